/*!
 * \file batch.h
 * \brief Groups small things that become ready together, so that other threads are woken once.
 *
 * A thread that processes many small items in a row (messages of one read, encodes of small
 * gradients) opens a Batch around them. Code that would wake another thread for each item defers
 * that to the end of the batch: messages to one peer are sent in one write, tasks enter the ready
 * queue together. A batch delays urgent work at most as long as a partition of a large gradient.
 */
#pragma once

#include <functional>

namespace hipress {

class Batch {
 public:
  Batch();
  /// Runs the deferred actions in their order: AtEnd's, then AfterAll's.
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  /// Defers `action` to the end of this thread's outermost batch; without one, runs it at once.
  static void AtEnd(std::function<void()> action);
  /// The same for slow actions, such as users' callbacks: after all other actions.
  static void AfterAll(std::function<void()> action);
  /// Whether this thread is inside one.
  static bool Open();
};

}  // namespace hipress
