/*!
 * \file node.h
 * \brief The object behind a HipressNodeHandle; native front ends (bindings/mxnet) use it directly.
 */
#pragma once

#include <unistd.h>

#include <future>
#include <memory>
#include <thread>

#include "bindings/error.h"
#include "hipress/c_api.h"
#include "kvstore/worker/kvstore_dist.h"
#include "kvstore/server/kvstore_dist_server.h"

namespace hipress {

/// Calls `done` of an operation that has ended. \param error its sentence, or null
inline void Report(const KVStoreDist& store, const char* error, HipressDone done, void* context) {
  if (error == nullptr) return done(context, nullptr);
  const Error failure = store.ErrorOf(error);
  const HipressError about = ToStruct(failure);
  done(context, &about);
}

}  // namespace hipress

/// One of the three is set, as the role says.
struct HipressNode {
  explicit HipressNode(hipress::JobOptions options);
  /// Leaves normally if it has not left.
  ~HipressNode();

  hipress::Postoffice& postoffice();
  /// Calls `call` with the one of the three that is set.
  template <typename Call>
  void Visit(Call call) {
    worker ? call(*worker) : server ? call(*server) : call(*scheduler);
  }
  /// Takes it out of this process's debug dumps.
  void Forget();
  /// Whether this is a forked child of the process that made the node, without the node's threads.
  bool InForkedChild() const { return getpid() != creator; }
  /// \throw Error if this node has another role, or in a forked child
  hipress::KVStoreDist& AsWorker();
  hipress::KVStoreDistServer& AsServer();
  /// \throw Error in a forked child
  void CheckNotForked() const;

  const hipress::Role role;
  const pid_t creator = getpid();
  std::shared_ptr<hipress::KVStoreDist> worker;  ///< its buckets also hold it
  std::unique_ptr<hipress::KVStoreDistServer> server;
  std::unique_ptr<hipress::Postoffice> scheduler;
  std::thread background;    ///< serves a scheduler of HipressStartScheduler
  std::future<void> served;  ///< its end
  HipressDone reported_together = nullptr;  ///< `together` reports successes of such operations
  HipressDoneTogether together = nullptr;
  int dumped = 0;  ///< number of debug_dumps::Add; 0: forgotten
};
