/*!
 * \file batch.h
 * \brief Groups small things that become ready together, so that other threads are woken once.
 *
 * A thread that processes many small items in a row (the messages of one read, encodes of small gradients)
 * opens a Batch around them. Code that would wake another thread for each of them defers that to the batch's
 * end, so the other thread finds all of them: messages to one peer are sent in one write, tasks enter the ready
 * queue together. A batch ends within the time of one partition of a large gradient, so it delays urgent work
 * at most as long as such a partition.
 */
#pragma once

#include <functional>

namespace hipress {

class Batch {
 public:
  Batch();
  /// Does what was put off, in the order in which it was: first what AtEnd got.
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  /// Puts `action` off to the end of this thread's batch; at once if it has none. Inside another
  /// batch, a batch is part of that one.
  static void AtEnd(std::function<void()> action);
  /// The same for slow actions, such as callbacks of programs: after all other actions.
  static void AfterAll(std::function<void()> action);
  /// Whether this thread is inside one.
  static bool Open();
};

}  // namespace hipress
