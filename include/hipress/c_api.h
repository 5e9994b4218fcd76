/*!
 * \file c_api.h
 * \brief The C ABI between native code and every front end.
 *
 * Python reads the declarations from this text, which the library holds (HipressDeclarations,
 * python/hipress/native/declarations.py): a function needs its line here, its implementation, and
 * its use.
 *
 * Conventions
 *  - Functions return 0, or -1 with an error in HipressGetLastError() (per thread), or
 *    HIPRESS_INTERRUPTED (see HipressSetInterpreter).
 *  - Sizes are 64-bit and count elements unless a name says bytes.
 *  - dtype is MXNet's type flag: 0 float32, 2 float16, 12 bfloat16.
 *  - Strings returned through `const char**` live until the same thread's next call of the library.
 *  - A HipressDone runs exactly once, on a thread of the library (or of the caller, before the call
 *    returns); it must not block and must not call back into a function documented as blocking.
 */
#ifndef HIPRESS_C_API_H_
#define HIPRESS_C_API_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HIPRESS_API __attribute__((visibility("default")))

typedef struct HipressNode* HipressNodeHandle;
typedef struct HipressCodec* HipressCodecHandle;

/*! \brief Kinds of failures. */
typedef enum HipressErrorCode {
  HIPRESS_ERROR_NONE = 0,
  HIPRESS_ERROR_CALL = 1,  /* this call or operation; others may succeed */
  HIPRESS_ERROR_JOB = 2,   /* the job: no operation can succeed */
  HIPRESS_ERROR_MEMORY = 3 /* an allocation */
} HipressErrorCode;
/*! \brief Causes: events at the node at fault. */
typedef enum HipressCause {
  HIPRESS_CAUSE_NONE = 0,        /* no node is at fault */
  HIPRESS_CAUSE_DIED = 1,        /* it died, or its connection broke */
  HIPRESS_CAUSE_LEFT = 2,        /* it left the job while other nodes needed it */
  HIPRESS_CAUSE_TIMED_OUT = 3,   /* a wait for it took too long */
  HIPRESS_CAUSE_REPORTED = 4,    /* it reported an error */
  HIPRESS_CAUSE_NOT_COMPUTED = 5 /* it left because MXNet could not compute a gradient */
} HipressCause;
/*! \brief An error. Programs decide by its numbers; the sentence is for users. */
typedef struct HipressError {
  int code;             /* HipressErrorCode */
  int cause;            /* HipressCause */
  int role;             /* of the node at fault: 0 scheduler, 1 server, 2 worker; -1: no known node */
  int rank;             /* its rank in that role, or -1 */
  const char* sentence; /* names the node as the job's users do (HIPRESS_RANKS) */
} HipressError;

/*! \brief error == NULL: done. Otherwise the error, valid during the call only. */
typedef void (*HipressDone)(void* context, const HipressError* error);
/*! \brief The operations with these contexts are done; the array lives during the call only. */
typedef void (*HipressDoneTogether)(void* const* contexts, int64_t count);

/*! \brief The error of this thread's last failed call; valid until the next one. Never NULL. */
HIPRESS_API const HipressError* HipressGetLastError(void);
HIPRESS_API const char* HipressVersion(void);
/*! \brief The text of c_api.h and mxnet.h that this library was built from. */
HIPRESS_API const char* HipressDeclarations(void);
/*! \brief Names of the instruction sets that this library has codecs for, separated by ", ", and
 *         the one that it uses on this processor. Both stay valid. */
HIPRESS_API int HipressInstructionSets(const char** compiled, const char** used);

/* ---- Signals --------------------------------------------------------------------------------- */

/*! \brief Result of a call that a signal handler has ended; see HipressTakeException. */
#define HIPRESS_INTERRUPTED (-2)
/*! \brief PyGILState_Ensure, PyGILState_Release, PyErr_CheckSignals and PyErr_Fetch of CPython, and
 *         the main thread's identifier (threading.main_thread().ident). */
typedef struct HipressInterpreter {
  int (*ensure)(void);
  void (*release)(int state);
  int (*check_signals)(void);
  void (*fetch)(void** type, void** value, void** traceback);
  uint64_t main_thread;
} HipressInterpreter;
/*!
 * \brief Makes calls that wait on the main thread run Python's signal handlers every 0.1 s. If a
 *        handler raises an exception the call returns HIPRESS_INTERRUPTED. NULL: no interpreter.
 */
HIPRESS_API int HipressSetInterpreter(const HipressInterpreter* interpreter);
/*! \brief The exception behind this thread's last HIPRESS_INTERRUPTED, for PyErr_Restore; once. */
HIPRESS_API int HipressTakeException(void** type, void** value, void** traceback);

/* ---- Codecs: encode and decode in this process ----------------------------------------------- */

/*! \brief JSON list of {name, summary, params, doc} of every registered codec. */
HIPRESS_API int HipressListCodecs(const char** json);
/*! \brief Names of the registered codecs, one a line. */
HIPRESS_API int HipressCodecNames(const char** names);
/*! \brief Loads a library compiled by CompLL: its algorithm becomes a type; `name` is its name. */
HIPRESS_API int HipressLoadCodec(const char* path, const char** name);
/*! \brief Makes a codec; keys must hold "type", and may hold "entropy" (1: an entropy coder makes
 * payloads shorter). One handle keeps one residual. */
HIPRESS_API int HipressCodecCreate(int num, const char** keys, const char** vals,
                                   HipressCodecHandle* out);
/*! \brief The codec that encodes sums of `count` gradients where `codec` encodes gradients. */
HIPRESS_API int HipressCodecForSumOf(HipressCodecHandle codec, int count, HipressCodecHandle* out);
HIPRESS_API int HipressCodecFree(HipressCodecHandle codec);
/*! \brief Calls on large gradients use so many threads (default 1); results do not depend on it. */
HIPRESS_API int HipressCodecSetThreads(HipressCodecHandle codec, int threads);
/*! \brief Upper bound of an encoded gradient of n elements, in bytes. */
HIPRESS_API int HipressCodecMaxBytes(HipressCodecHandle codec, int64_t n, int dtype,
                                     int64_t* bytes);
/*! \brief Encodes gradient (+ the handle's residual, which is updated); payload holds MaxBytes. */
HIPRESS_API int HipressCodecEncode(HipressCodecHandle codec, const void* gradient, int64_t n,
                                   int dtype, void* payload, int64_t* bytes);
HIPRESS_API int HipressCodecDecode(HipressCodecHandle codec, const void* payload, int64_t bytes,
                                   int64_t n, int dtype, void* out);
/*! \brief sum = p0 + p1 + ..., float32, as a server merges. */
HIPRESS_API int HipressCodecDecodeSum(HipressCodecHandle codec, int count, const void** payloads,
                                      const int64_t* bytes, int64_t n, int dtype, float* sum);
/*!
 * \brief Encodes with states that the caller keeps, so that any number of threads may use one
 *        handle.
 * \param states float32[n] for each of HipressCodecDescribe's states, zeros at first; updated
 * \param step encodes of these states so far
 * \param stream distinguishes encoders that share a random codec's seed
 */
HIPRESS_API int HipressCodecEncodeWith(HipressCodecHandle codec, const void* gradient, int64_t n,
                                       int dtype, int num_states, float* const* states,
                                       uint64_t step, uint32_t stream, void* payload,
                                       int64_t* bytes);
/*! \brief Properties of a codec; strings live as long as its handle. */
typedef struct HipressCodecDescription {
  const char* name;
  const char* config;         /* type and every parameter: "type=2bit threshold=0.5" */
  int num_states;
  int dense;                  /* the decoder is one pass that writes every element */
  const char* const* states;  /* names of its states of a gradient, float32[n] each */
  int uses_step;              /* 0: the payload depends on nothing but the gradient */
  int fixed_size;             /* every payload of n elements has MaxBytes(n) bytes */
  int64_t granularity;        /* cut gradients into partitions at multiples of this */
} HipressCodecDescription;
HIPRESS_API int HipressCodecDescribe(HipressCodecHandle codec, HipressCodecDescription* out);
/*!
 * \brief Copies one of the handle's states (float32[n]; zeros before the first encode) out of, or
 *        into, the handle.
 * \param name "residual", which any codec accepts, or another of HipressCodecDescribe's states
 */
HIPRESS_API int HipressCodecGetState(HipressCodecHandle codec, const char* name, int64_t n,
                                     float* out);
HIPRESS_API int HipressCodecSetState(HipressCodecHandle codec, const char* name, int64_t n,
                                     const float* in);
/*! \brief Encodes done, and the stream (see HipressCodecEncodeWith), of the handle's states. */
HIPRESS_API int HipressCodecGetStep(HipressCodecHandle codec, uint64_t* step, uint32_t* stream);
HIPRESS_API int HipressCodecSetStep(HipressCodecHandle codec, uint64_t step, uint32_t stream);
/*!
 * \brief Restores the handle's states and its step, bit for bit, from before this transaction of
 *        HipressBucketRun, or a later one, unless no encode has changed them since. No encode may
 *        be running.
 */
HIPRESS_API int HipressCodecRollBack(HipressCodecHandle codec, uint64_t transaction);

/* ---- Low rank: PowerSGD's work on one rank --------------------------------------------------- */

/*!
 * \brief A gradient of [rows, cols] and its state, in memory of the caller.
 *
 * `last` and `next` are float32 [rows, cols], factors float32 [rank, rows] (p) or [rank, cols] (q);
 * the last dimension of each is padded with zeros to a multiple of 32, and begins at a multiple of
 * 64 bytes. The residual is last - last_p^T last_q. src/operator/contrib/low_rank.h says how it is
 * computed.
 */
typedef struct HipressLowRank {
  int64_t rows, cols, rank;
  void* gradient; /* not padded */
  int64_t dtype;  /* of it */
  float* last;
  float* next;
  float* last_p;
  float* last_q;
  float* start_q; /* orthonormal: the Q that the next step begins with */
  float* own_q;
  float* p; /* summed over the ranks first */
  float* q; /* summed second */
} HipressLowRank;

/*! \brief Makes start_q orthonormal. Zeros in it become arbitrary values, always the same ones. */
HIPRESS_API int HipressLowRankStart(HipressLowRank* matrix);
/*! \brief The residual, float32 [rows, cols], not padded. */
HIPRESS_API int HipressLowRankResidual(const HipressLowRank* matrix, float* out);

/* ---- A node of a job ------------------------------------------------------------------------- */

/*!
 * \brief Joins the job that the DMLC_* environment describes, and blocks until all nodes are here.
 *        These names and values override the environment. A process may be several nodes, of
 *        several jobs.
 */
HIPRESS_API int HipressStartWith(int num, const char** names, const char** values,
                                 HipressNodeHandle* out);
/*!
 * \brief Makes this process a job's scheduler, in the background. DMLC_PS_ROOT_PORT may be 0: a
 *        free one.
 * \param address "host:port" where it listens; valid until the thread's next call
 */
HIPRESS_API int HipressStartScheduler(int num, const char** names, const char** values,
                                      HipressNodeHandle* out, const char** address);
/*! \brief Waits for the end of such a scheduler's job. \param over whether it came in this time */
HIPRESS_API int HipressAwaitEnd(HipressNodeHandle node, int milliseconds, int* over);
/*!
 * \brief Leaves: waits for own sends, sends a goodbye. The handle stays valid for HipressFree.
 *
 * All operations have ended when this, or HipressAbort, returns; no callback comes after it.
 */
HIPRESS_API int HipressStop(HipressNodeHandle node);
/*! \brief Leaves without a goodbye, so that other nodes fail with this node's name. */
HIPRESS_API int HipressAbort(HipressNodeHandle node);
HIPRESS_API int HipressFree(HipressNodeHandle node);

/*! \brief "scheduler", "server" or "worker". */
HIPRESS_API int HipressRole(HipressNodeHandle node, const char** role);
HIPRESS_API int HipressRank(HipressNodeHandle node, int* rank);
HIPRESS_API int HipressGroupSize(HipressNodeHandle node, int* num_workers, int* num_servers);
/*! \brief Longest wait for other nodes, in seconds (HIPRESS_TIMEOUT). */
HIPRESS_API int HipressTimeout(HipressNodeHandle node, int* seconds);
/*! \brief Blocks until all workers are here. */
HIPRESS_API int HipressBarrier(HipressNodeHandle node);
/*! \brief Dead nodes of a group; node_id as in ps-lite: bits 1 scheduler, 2 servers, 4 workers. */
HIPRESS_API int HipressNumDeadNode(HipressNodeHandle node, int node_id, int* number);
/*! \brief Nodes that were connected to this one and have left without a failure, as packed node ids
 *         (see HipressInit). Servers and the scheduler know of all workers. Valid until the
 *         thread's next call. */
HIPRESS_API int HipressLeft(HipressNodeHandle node, const uint32_t** nodes, int64_t* count);
/*! \brief The error of every operation of this worker; NULL while the job has not failed. Valid
 *         until the thread's next call. */
HIPRESS_API int HipressFailure(HipressNodeHandle node, const HipressError** error);
/*! \brief JSON of the counters of the transport and the store (bytes sent, pushed, pulled, ...). */
HIPRESS_API int HipressStats(HipressNodeHandle node, const char** json);
/*! \brief JSON of the node's running operations, waits and last events, as in a dump on SIGUSR1 or
 *         after a timeout (docs/guides/debug-a-hang.md). */
HIPRESS_API int HipressDebugDump(HipressNodeHandle node, const char** json);
/*! \brief Sets the entry of dumps about a part of this process that is no node ("agent 2"): a JSON
 *         object, written unmodified, with its age. NULL: no entry. Never waits for a node. */
HIPRESS_API int HipressSetDebugStatus(const char* name, const char* json);
/*! \brief Starts or renews a watch: a native thread ends this process with that status if this is
 *         not called again for so many seconds, in which the process was not stopped. The thread
 *         raises the signal before, unless it is 0, and writes the words to stderr. 0 seconds: no
 *         watch. */
HIPRESS_API int HipressKeepAlive(double seconds, int signal, int status, const char* words);

/* ---- Worker ---------------------------------------------------------------------------------- */

/*!
 * \brief Initializes a key on all workers together: blocks until every worker has called it.
 *
 * Rank 0's data becomes the value, on the servers or, without any in the graph, on all workers.
 * Fails on every worker if sizes, dtypes or graphs differ between workers.
 * \param data n elements; read on rank 0 only
 * \param graph a text that describes the key's graph, the same on all workers
 * \param num_programs task programs of this key: one for this worker and one for each server
 * \param nodes packed node id (role << 16 | rank; server = 1, worker = 2) of each program
 * \param programs each program as flat int64 (python/hipress/topology/flat_program.py documents the
 *                 layout)
 * \param lengths int64 count of each program
 */
HIPRESS_API int HipressInit(HipressNodeHandle node, uint64_t key, const char* name,
                            const void* data, int64_t n, int dtype, const char* graph,
                            int num_programs, const uint32_t* nodes,
                            const int64_t* const* programs, const int64_t* lengths);
/*!
 * \brief Pushes a gradient. Asynchronous: `gradient` must stay unchanged until `done`, which means
 *        "the gradient can be freed", not "the servers have it".
 * \param name, n, dtype must match HipressInit, otherwise -1 at once (done is not called)
 * \param priority higher goes first
 */
HIPRESS_API int HipressPush(HipressNodeHandle node, uint64_t key, const void* gradient, int64_t n,
                            int dtype, int priority, HipressDone done, void* context);
/*! \brief Pulls the result of this worker's latest push (or, without one, the current value). */
HIPRESS_API int HipressPull(HipressNodeHandle node, uint64_t key, void* out, int64_t n, int dtype,
                            int priority, HipressDone done, void* context);
/*! \brief Push and pull in one; `out` may be `gradient`. `done` means that `out` is complete. */
HIPRESS_API int HipressPushPull(HipressNodeHandle node, uint64_t key, const void* gradient,
                                void* out, int64_t n, int dtype, int priority, HipressDone done,
                                void* context);
/*!
 * \brief HipressPushPull of several keys in one call; `done` once, when all have ended, with the
 *        first error. Small gradients share messages. Nothing is pushed if it returns -1.
 */
HIPRESS_API int HipressPushPullAll(HipressNodeHandle node, int64_t count, const uint64_t* keys,
                                   const void* const* gradients, void* const* outs,
                                   const int64_t* ns, const int* dtypes, const int* priorities,
                                   HipressDone done, void* context);
/*!
 * \brief From now on, successful pushes and pulls with this `done` are reported to `together`
 *        instead: those of one batch of tasks in one call, for callers whose callbacks are
 *        expensive. They may be reported after HipressWaitAll has returned. Failures still go to
 *        `done`.
 */
HIPRESS_API int HipressReportTogether(HipressNodeHandle node, HipressDone done,
                                      HipressDoneTogether together);
/*! \brief Gradient compression of all later pushes, by name=value pairs (type, min_size, ...). */
HIPRESS_API int HipressSetGradientCompression(HipressNodeHandle node, int num, const char** keys,
                                              const char** vals);
/*! \brief Sync mode (default): a push counts when all workers have pushed. Async: at once. Before
 *         the first HipressInit, the same on every worker. */
HIPRESS_API int HipressSetSync(HipressNodeHandle node, int sync);
/*!
 * \brief Sends a command to one server and blocks for its answer.
 * \param reply, reply_bytes the handler's answer; valid until the thread's next call
 */
HIPRESS_API int HipressCommand(HipressNodeHandle node, int server, int head, const void* body,
                               int64_t body_bytes, const void** reply, int64_t* reply_bytes);
/*!
 * \brief The states of encodes of keys `first` to `last` (included): residuals and other vectors of
 *        their codecs, and numbers of encodes. Blocks until this worker's pushes are encoded.
 * \param server rank of the server whose states these are, or -1: this worker's
 * \param states valid until the thread's next call
 */
HIPRESS_API int HipressSaveStates(HipressNodeHandle node, int server, uint64_t first, uint64_t last,
                                  const void** states, int64_t* bytes);
/*! \brief The 2-norm of all vectors that HipressSaveStates saves of this worker's keys. */
HIPRESS_API int HipressNormOfStates(HipressNodeHandle node, uint64_t first, uint64_t last,
                                    double* norm);
/*! \brief Loads states of keys in that range in a job of the same shape, which then continues with
 *         the same bits as the job that saved them. If they do not fit, nothing changes. */
HIPRESS_API int HipressLoadStates(HipressNodeHandle node, int server, uint64_t first, uint64_t last,
                                  const void* states, int64_t bytes);
/*! \brief Test and tool helper: blocks until everything pushed and pulled so far is done. */
HIPRESS_API int HipressWaitAll(HipressNodeHandle node);

/* ---- Buckets of gradients, whose encodes the caller binds ------------------------------------ */

/*! \brief How one task of a program encodes. */
typedef struct HipressEncodeBinding {
  int64_t task;             /* its index in the program */
  HipressCodecHandle codec; /* with its states; it may be freed before the key is dropped */
  int64_t wire;             /* type of an uncompressed payload */
  double factor;            /* of a sum before it is encoded, rounded to float32 */
} HipressEncodeBinding;

/*!
 * \brief Begins to make a key whose graph has no servers; HipressAwaitKeys waits for any number of
 *        them. The key has no value before its first push.
 * \param key a number that no other node of this process has, the same on all workers
 * \param graph a text that describes the key's graph and settings, the same on all workers
 * \param program of this worker; its partitions may have gaps between them in the gradient's memory
 * \param encodes one for each task that encodes
 * \param output_factor factor of sums that no node encodes, rounded to float32
 * \param momentum shared by all workers: gradients get so many times the last result; 0: none
 */
HIPRESS_API int HipressAddKey(HipressNodeHandle node, uint64_t key, const char* name, int64_t n,
                              int dtype, const char* graph, const int64_t* program, int64_t length,
                              const HipressEncodeBinding* encodes, int64_t num_encodes,
                              double output_factor, double momentum);
/*!
 * \brief Blocks until all workers have added the keys that this one has. If the keys differ, it
 *        fails on all workers, and none of these keys exists.
 */
HIPRESS_API int HipressAwaitKeys(HipressNodeHandle node);
/*! \brief Drops a key that no worker will push again. */
HIPRESS_API int HipressDropKey(HipressNodeHandle node, uint64_t key);
/*!
 * \brief A key's last result, a multiple of which is added to its next gradients: float32,
 *        partition after partition. No step may be running.
 */
HIPRESS_API int HipressGetMomentum(HipressNodeHandle node, uint64_t key, float* out);
HIPRESS_API int HipressSetMomentum(HipressNodeHandle node, uint64_t key, const float* values);
/*!
 * \brief Blocks until all that was pushed is encoded: encodes for other workers may outlast their
 *        step's `done`. Fails if the job has failed: HipressAbort then waits.
 */
HIPRESS_API int HipressAwaitEncodes(HipressNodeHandle node);
/*! \brief Restores a key's last result from before this transaction, or a later one. No step may be
 *         running. The node may have left. */
HIPRESS_API int HipressMomentumRollBack(HipressNodeHandle node, uint64_t key, uint64_t transaction);

typedef struct HipressBucket* HipressBucketHandle;
/*! \brief Elements [offset, offset + count) of a bucket's flat tensor. */
typedef struct HipressSpan {
  int64_t offset;
  int64_t count;
} HipressSpan;

/*!
 * \brief A bucket: gradients of one type in one flat tensor, which are synchronized in one call.
 *
 * Those of `keys` are sent in place. Those of `fused` are sent one after the other by the key
 * `fusion`.
 * \param dtype of the flat tensor
 * \param all spans of all gradients
 * \param offsets where in the flat tensor each key's gradient begins
 * \param checked 1: if a gradient of any worker has a NaN or Inf, all results are NaN on all
 *        workers, and the step changes no state; 0: no check
 */
HIPRESS_API int HipressBucketCreate(HipressNodeHandle node, int dtype, const HipressSpan* all,
                                    int64_t num_all, const uint64_t* keys, const int64_t* offsets,
                                    int64_t num_keys, uint64_t fusion, const HipressSpan* fused,
                                    int64_t num_fused, int checked, HipressBucketHandle* out);
/*!
 * \brief Matrices of the bucket are sent as factors: all P by key `p`, followed by the fused
 *        gradients (`fusion` is `p` then), and all Q by key `q`; both float32.
 * \param matrices whose gradient, dtype, p and q the bucket fills in
 * \param offsets where in the flat tensor each matrix begins
 */
HIPRESS_API int HipressBucketSetLowRank(HipressBucketHandle bucket, HipressNodeHandle node,
                                        uint64_t p, uint64_t q, HipressLowRank* const* matrices,
                                        const int64_t* offsets, int64_t num);
/*!
 * \brief Replaces the gradients in `flat` by their sums, or means. Asynchronous.
 *
 * Steps with the same number, of any buckets, are a transaction. The states of codecs and of shared
 * momentum before it can be restored (HipressCodecRollBack, HipressMomentumRollBack) until the next
 * transaction changes them. The caller saves the states of low rank. All steps of a transaction end
 * before the next one begins.
 * \param transaction above all earlier ones of this process; 0: nothing is saved, and this costs
 *        nothing
 * \param non_finite 1 if all results are NaN because of a NaN or Inf, else 0; set before `done`
 */
HIPRESS_API int HipressBucketRun(HipressBucketHandle bucket, void* flat, uint64_t transaction,
                                 int* non_finite, HipressDone done, void* context);
HIPRESS_API int HipressBucketFree(HipressBucketHandle bucket);

/* ---- Server and scheduler -------------------------------------------------------------------- */

/*!
 * \brief Applies the optimizer to one key's shard on this server: weight <- f(weight, gradient).
 * \param gradient, weight float32[n], contiguous; weight is updated in place
 * \return 0, or -1 after HipressSetError
 */
typedef int (*HipressUpdater)(void* context, uint64_t key, const char* name, float* gradient,
                              float* weight, int64_t n);
/*! \brief Returned by a HipressController that cannot answer yet: it is called again with the same
 *         command after the next one, and every second. */
#define HIPRESS_LATER 1
/*!
 * \brief Handles a worker's command. Answers with HipressSetReply. One call at a time.
 * \return 0, or -1 after HipressSetError: the worker gets that sentence as an error, or
 *        HIPRESS_LATER; or HIPRESS_INTERRUPTED: HipressServe leaves the job as a failure, and
 *        returns that
 */
typedef int (*HipressController)(void* context, int worker, int head, const void* body,
                                 int64_t body_bytes);
HIPRESS_API void HipressSetError(const char* sentence);
HIPRESS_API void HipressSetReply(const void* data, int64_t bytes);
/*! \brief From now on this server updates weights with `updater` (NULL: the value is the sum). */
HIPRESS_API int HipressSetUpdater(HipressNodeHandle node, HipressUpdater updater, void* context);
/*!
 * \brief All operations fail with this sentence, running or later: from a server on every worker,
 *        from a worker on itself and on those that it exchanges gradients with. The first one
 *        counts.
 */
HIPRESS_API int HipressFailJob(HipressNodeHandle node, const char* sentence);
/*! \brief HipressFailJob on a worker if any of its operations is running. NULL: no effect. */
HIPRESS_API int HipressFailPending(HipressNodeHandle node, const char* sentence);
/*! \brief Serves until the job ends, then leaves: 0 if all workers left on purpose, -1 if a node
 *         died. Commands run on the calling thread, updates on the library's threads. */
HIPRESS_API int HipressServe(HipressNodeHandle node, HipressController controller, void* context);

/* ---- Encryption of connections that Python makes --------------------------------------------- */

/*! \brief Makes a key pair and a certificate that is signed with it, as PEM text: for a TLS server
 *         whose clients know the certificate's digest. */
HIPRESS_API int HipressMakeCertificate(const char** pem);

#ifdef __cplusplus
}
#endif

#endif  // HIPRESS_C_API_H_
