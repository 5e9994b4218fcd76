/*!
 * \file mxnet.h
 * \brief Push and pull of MXNet's arrays as operations of MXNet's own engine.
 *
 * Uses nothing of MXNet but its C API, found in the libmxnet.so that the process has loaded, so
 * that one build of this library serves every build of MXNet 1.x. Conventions as in c_api.h.
 *
 * An operation starts when its array is ready, and the engine reserves the array until the
 * operation has ended. Operations on one key start in the order of the calls, in whatever order
 * their arrays become ready. A failure becomes an MXNetError where the array is waited for. Later
 * calls return the error with its cause and node.
 */
#ifndef HIPRESS_MXNET_H_
#define HIPRESS_MXNET_H_

#include "hipress/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/*!
 * \brief Finds MXNet's functions. Call once, before anything else here.
 * \param libmxnet path of the libmxnet.so that is loaded already
 * \param wait_inside 1 for MXNet's NaiveEngine, whose operations must end before they return
 */
HIPRESS_API int HipressMXBind(const char* libmxnet, int wait_inside);
typedef struct HipressMXKey* HipressMXKeyHandle;
/*!
 * \brief Makes a handle of a key of HipressInit. It is never freed.
 * \param name the key as the user knows it, for errors
 */
HIPRESS_API int HipressMXKeyCreate(HipressNodeHandle node, uint64_t key, const char* name, int64_t n,
                                   int dtype, HipressMXKeyHandle* out);
/*! \brief Returned below if an array is not one of n elements of dtype, dense, in CPU memory:
 *         nothing is scheduled, and the caller must convert the array or refuse it. */
#define HIPRESS_MX_OTHER_ARRAY 1
/*!
 * \brief Schedules HipressPush of an array; it is read in place and may not be changed until then.
 *
 * If the array could not be computed (the engine skips operations that depend on a failure), the
 * other workers would wait for this push forever: the node leaves the job as if it had crashed, and
 * every later operation here fails with a sentence that says so.
 * \param array NDArrayHandle
 */
HIPRESS_API int HipressMXPush(HipressMXKeyHandle key, void* array, int priority);
/*! \brief Schedules HipressPull into an array, in place. */
HIPRESS_API int HipressMXPull(HipressMXKeyHandle key, void* array, int priority);
/*! \brief Schedules HipressPushPull of an array into itself; with another `out`, a push and a pull.
 *         */
HIPRESS_API int HipressMXPushPull(HipressMXKeyHandle key, void* gradient, void* out, int priority);
/*!
 * \brief Carries out an operation whose array is ready; calls HipressMXEnd at its end, then or
 *        later.
 *
 * Runs on any thread, and must not block.
 */
typedef void (*HipressMXStart)(void* context, void* operation);
/*!
 * \brief Schedules an operation that the caller carries out, on an array of any kind that no other
 *        code changes: for arrays that HipressPush and HipressPull do not support, such as rows.
 *
 * It keeps its place among the key's other operations, up to its start.
 * \param writes 0: it reads the array. If that could not be computed, `start` is never called, and
 *        the node leaves as with HipressMXPush. 1: it writes the array's memory.
 */
HIPRESS_API int HipressMXSchedule(HipressMXKeyHandle key, void* array, int writes, int priority,
                                  HipressMXStart start, void* context);
/*! \brief Ends such an operation, once. \param error NULL, or the sentence that it failed with */
HIPRESS_API int HipressMXEnd(void* operation, const char* error);
/*! \brief Operations that are ready enter the store now. Otherwise one that others are expected to
 *         follow may be kept for a millisecond, so that they enter it together. */
HIPRESS_API int HipressMXFlush(HipressNodeHandle node);
/*! \brief Before HipressStop: operations that start from now on fail, and abort nothing. */
HIPRESS_API int HipressMXClose(HipressNodeHandle node);

#ifdef __cplusplus
}
#endif

#endif  // HIPRESS_MXNET_H_
