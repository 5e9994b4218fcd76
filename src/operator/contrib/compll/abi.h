/*!
 * \file abi.h
 * \brief What a compiled CompLL algorithm looks like from outside: one C struct.
 *
 * The same struct serves algorithms that are part of the library and those that are compiled at run
 * time and loaded from a shared library, whatever compiler made them.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_ABI_H_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_ABI_H_

#include <stdint.h>

#define COMPLL_ABI_VERSION 2u

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

struct CompllEncodeCall {
  const float* gradient;   ///< float32[n]
  int64_t n;
  const double* params;    ///< one for each parameter, in order, within their bounds
  float* const* states;    ///< float32[n] for each state, zeros at first, updated
  uint64_t step;           ///< encodes of these states so far
  uint32_t stream;         ///< tells apart places that share a seed
  int threads;             ///< at least 1; changes no result
  uint8_t* payload;        ///< max_bytes(n, params) bytes
};

struct CompllDecodeCall {
  const uint8_t* payload;
  int64_t bytes;
  int64_t n;
  const double* params;
  float* out;              ///< float32[n]
  int add;                 ///< out += decoded, instead of out = decoded
  int check_only;          ///< looks at the payload, writes nothing
  int threads;
  char* error;             ///< a sentence, if decode returns -1
  int error_size;
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
  int64_t (*granularity)(const double* params);  ///< cut partitions at multiples of this
  int64_t (*max_bytes)(int64_t n, const double* params);
  int64_t (*encode)(const CompllEncodeCall* call);  ///< bytes written; null: no encoder
  int (*decode)(const CompllDecodeCall* call);  ///< 0, or -1: malformed payload; null: none
  /// Parameters for the sum of `count` payloads; the caller checks their bounds.
  void (*for_sum)(const double* params, int64_t count, double* out);
};

typedef const CompllAlgorithm* (*CompllEntry)(void);
/// The symbol of the entry in a shared library.
#define COMPLL_ENTRY_NAME "hipress_compll_algorithm"

}  // extern "C"

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_ABI_H_
