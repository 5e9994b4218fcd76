/*!
 * \file batch.h
 * \brief Groups small things that become ready together, so that other threads are woken once.
 *
 * A thread that goes through many small things in a row (the messages of one read, encodes of small
 * gradients) opens a Batch around them. Whoever would wake another thread for each of them leaves
 * that to the batch's end, so the other thread finds all of them: messages to one peer leave in one
 * write, tasks enter the ready queue in one go. A batch ends within the time that one partition of a
 * large gradient takes, so nothing urgent waits longer for it than it would for that.
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
  /// The same for what may take long, as a program's callbacks do: after all of the others.
  static void AfterAll(std::function<void()> action);
  /// Whether this thread is inside one.
  static bool Open();
};

}  // namespace hipress
