/*!
 * \file mxnet.h
 * \brief Push and pull of MXNet's arrays as operations of MXNet's own engine.
 *
 * Uses nothing of MXNet but its C API, found in the libmxnet.so that the process has loaded, so
 * that one build of this library serves every build of MXNet 1.x. Conventions as in c_api.h.
 *
 * An operation starts when the engine says that its array is ready, and the array stays taken until
 * the operation is done. Operations on one key start in the order of the calls, whatever order
 * their arrays become ready in. A failure becomes an MXNetError where the array is waited for.
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
/*!
 * \brief Schedules HipressPush of an array; it is read in place and may not be changed until then.
 *
 * If the array could not be computed (the engine skips what depends on a failure), the other
 * workers would wait for this push for ever: the node leaves the job as if it had crashed, and
 * every later operation here fails with a sentence that says so.
 * \param name the key as the user knows it, for errors
 * \param array NDArrayHandle of n contiguous elements in CPU memory
 */
HIPRESS_API int HipressMXPush(HipressNodeHandle node, uint64_t key, const char* name, void* array,
                              int64_t n, int dtype, int priority);
/*! \brief Schedules HipressPull into an array, in place. */
HIPRESS_API int HipressMXPull(HipressNodeHandle node, uint64_t key, const char* name, void* array,
                              int64_t n, int dtype, int priority);
/*! \brief Schedules HipressPushPull of an array into itself. */
HIPRESS_API int HipressMXPushPull(HipressNodeHandle node, uint64_t key, const char* name,
                                  void* array, int64_t n, int dtype, int priority);
/*! \brief Before HipressStop: operations that start from now on fail, and abort nothing. */
HIPRESS_API int HipressMXClose(HipressNodeHandle node);

#ifdef __cplusplus
}
#endif

#endif  // HIPRESS_MXNET_H_
