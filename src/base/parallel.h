/*!
 * \file parallel.h
 * \brief Short tasks on several cores: one pool for the process.
 */
#pragma once

#include <cstdint>

namespace hipress {

/*!
 * \brief Runs task(context, i) for each i < count, on this thread and others, until all are done.
 *
 * Threads that have just worked look out for more for some microseconds before they sleep, so that
 * tasks of ten microseconds pay. While another thread uses the pool, or in a child of fork(), all
 * tasks run here one after the other.
 */
void ParallelRun(int64_t count, void (*task)(void* context, int64_t i), void* context);

}  // namespace hipress
