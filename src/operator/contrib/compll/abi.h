/*!
 * \file abi.h
 * \brief What a compiled CompLL algorithm looks like from outside: one C struct.
 *
 * The same struct serves algorithms that are part of the library and those that are compiled at run
 * time and loaded from a shared library, whatever compiler made them.
 */
#pragma once

#include <stdint.h>

#define COMPLL_ABI_VERSION 6u
/// At most this many numbers belong to a lazy state.
#define COMPLL_MAX_LAZY 8

extern "C" {

/// A parameter. Values are passed as doubles, which hold any float32 and any uint32 exactly.
struct CompllParam {
  const char* name;
  const char* type;         ///< as written: "float", "int", "uint8", ...
  const char* doc;          ///< what it does
  const char* allowed;      ///< the allowed values in words, e.g. "a finite number > 0"
  int has_default;
  double default_value;
  int num_choices;          ///< > 0: the value is one of `choices`
  const double* choices;
  double low, high;         ///< -inf, inf where there is no bound
  int low_open, high_open;  ///< the bound itself is not allowed
  int64_t multiple;         ///< an integer must be a multiple of this
};

/// Element types of gradients and of decoded values.
enum CompllType { COMPLL_FLOAT32 = 0, COMPLL_FLOAT16 = 1, COMPLL_BFLOAT16 = 2 };

/// Runs task(context, i) for each i < count, perhaps at once, and returns when all are done.
typedef void (*CompllParallel)(int64_t count, void (*task)(void* context, int64_t i),
                               void* context);

struct CompllEncodeCall {
  const void* gradient;    ///< n elements of gradient_type
  int gradient_type;
  int64_t n;
  const double* params;    ///< one for each parameter, in order, within their bounds
  float* const* states;    ///< float32[n] for each state in use: what it is afterwards
  const float* const* before;  ///< what each was, zeros at first: the same memory, or memory apart
  int lazy;                ///< in, out: the states are lazy, see CompllAlgorithm::settle
  float* lazy_values;      ///< in, out: COMPLL_MAX_LAZY numbers that belong to lazy states
  uint64_t step;           ///< encodes of these states so far
  uint32_t stream;         ///< distinguishes encoders that share a seed
  int threads;             ///< at least 1; changes no result
  CompllParallel parallel; ///< null: threads are started for the call
  uint8_t* payload;        ///< max_bytes(n, params) bytes
};

/// Decodes the sum of `count` >= 1 payloads: their merge, in their order.
struct CompllDecodeCall {
  const uint8_t* const* payloads;
  const int64_t* bytes;
  int64_t count;
  int64_t n;
  const double* params;
  void* out;               ///< n elements of out_type
  int out_type;            ///< COMPLL_FLOAT32 unless the algorithm is `dense`
  int add;                 ///< out += the sum, instead of out = the sum; float32 only
  int check_only;          ///< checks the payloads, writes nothing
  int threads;
  CompllParallel parallel;
  char* error;             ///< a sentence, if decode returns -1
  int error_size;
};

struct CompllSettleCall {
  float* const* states;
  const float* lazy_values;
  int64_t n;
  int threads;
  CompllParallel parallel;
};

struct CompllAlgorithm {
  uint32_t abi_version;    ///< COMPLL_ABI_VERSION
  const char* name;
  const char* spec;        ///< digest of the algorithm's meaning: equal digests, equal payloads
  const char* summary;
  int num_params;
  const CompllParam* params;
  int num_states;
  const char* const* states;  ///< their names
  int residual;            ///< index of the state named "residual", -1 if there is none
  int fixed_size;          ///< every payload of n elements has max_bytes(n) bytes
  int uses_step;           ///< payloads depend on states, or on CompllEncodeCall::step
  int64_t (*granularity)(const double* params);  ///< cut partitions at multiples of this
  int64_t (*max_bytes)(int64_t n, const double* params);
  /// Bit s: an encode with these parameters accesses state s. Pointers to others may be null.
  int64_t (*used_states)(const double* params);
  int64_t (*encode)(CompllEncodeCall* call);    ///< bytes written; null: no encoder
  int (*decode)(const CompllDecodeCall* call);  ///< 0, or -1: malformed payload; null: none
  /// Makes lazy states plain. An encoder may leave x = gradient + residual in a state and save the
  /// numbers that make the residual of it, which the next encode does on the fly: one pass over
  /// memory fewer, the same bits. Null: states are never lazy.
  void (*settle)(const CompllSettleCall* call);
  int dense;               ///< decode writes every element, also of float16 and bfloat16
  /// Parameters for the sum of `count` payloads; the caller checks their bounds.
  void (*for_sum)(const double* params, int64_t count, double* out);
  /// Decoding gives back the gradient's bits: float16 and bfloat16 are not float32 on the way. Then
  /// max_bytes is that of float32; elements of two bytes have a bound that is 2 * n lower.
  int exact;
};

typedef const CompllAlgorithm* (*CompllEntry)(void);
/// The symbol of the entry in a shared library.
#define COMPLL_ENTRY_NAME "hipress_compll_algorithm"

}  // extern "C"
