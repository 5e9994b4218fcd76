/*!
 * \file codec.h
 * \brief The interface of a gradient compression algorithm, and the registry of them.
 *
 * A codec is immutable once made: its parameters are fixed, so a payload can never be decoded with
 * other parameters than it was encoded with. What must live on between two encodes of the same
 * partition (the residual of error feedback, a step count) is in a CodecState that the caller
 * keeps. A codec knows nothing of keys, nodes or networks.
 *
 * All functions may be called from any thread; one CodecState by one thread at a time.
 */
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/types.h"

struct CompllAlgorithm;

namespace hipress {

/// Error-feedback state that one encode task keeps for its partition between iterations. A codec
/// does not write to a vector whose Buffer is shared, so a copy of a state does not change.
struct CodecState {
  /// float32[n], n the partition's element count; null until the first encode with error feedback.
  Buffer residual;
  /// Encodes done so far; the counter of random codecs.
  uint64_t step = 0;
  /// Number that distinguishes encode tasks (of nodes, keys, partitions) that share a random
  /// codec's seed.
  uint32_t stream = 0;
  /// Not null while `residual` is lazy: it holds x = gradient + old residual of the last encode,
  /// and this algorithm makes the true residual of x in the next encode (one pass over memory
  /// fewer).
  const CompllAlgorithm* lazy = nullptr;
  /// Values that the algorithm needs for that.
  float lazy_values[8] = {};
  /// Other states (momentum, ...) of a codec compiled by CompLL, and the algorithm that owns them.
  std::vector<Buffer> extra;
  const CompllAlgorithm* extra_of = nullptr;
};

/// float32[n] zeros, for a CodecState.
Buffer ZeroState(size_t n);

/// The state's float32[n] residual, which may be lazy; zeros if there was none.
/// \throw Error if the state belongs to a partition of another size
float* ResidualOf(CodecState* state, size_t n);

/// Makes a lazy residual plain (float32[n] in state->residual, lazy null), so that another codec,
/// or a checkpoint, can use it.
void Settle(CodecState* state, size_t n);

/// If a vector's memory is shared, replaces it by other memory, of undefined content.
/// \return the shared memory, or an empty Buffer
Buffer Unshare(Buffer* vector);

/// An encoded partition, as received.
struct Payload {
  const uint8_t* data = nullptr;
  size_t bytes = 0;
};

/// name=value pairs, as users and the wire write parameters.
using ParamList = std::vector<std::pair<std::string, std::string>>;

class Codec {
 public:
  virtual ~Codec() = default;

  /// The registered type name, e.g. "2bit".
  virtual std::string Name() const = 0;
  /// Type and every parameter with its exact value ("type=2bit threshold=0.5"), floats printed so
  /// that they read back bit for bit. MakeCodec(Config()) gives an equal codec on any machine.
  virtual std::string Config() const = 0;
  /// Partitions and shards are cut at multiples of this many elements.
  virtual size_t Granularity() const { return 1; }
  /// True if a payload is the gradient's own bytes in the wire dtype.
  virtual bool IsIdentity() const { return false; }
  /// True if encoding keeps a residual in the state.
  virtual bool HasResidual() const { return false; }

  /// Names of the vectors, float32[n], that encoding keeps in a CodecState: "residual" and others.
  virtual std::vector<std::string> StateNames() const { return {}; }
  /// True if a payload depends on more than the gradient: on states, or on the count of encodes.
  virtual bool UsesStep() const { return false; }
  /// The vectors of `state` with these names, in that order. An empty Buffer stands for zeros, and
  /// for vectors that the parameters make superfluous; the residual may be lazy.
  virtual std::vector<Buffer*> States(CodecState* state) const { return {}; }

  /// Upper bound of Encode's result for n elements, in bytes; exact if FixedSize().
  virtual size_t MaxPayloadBytes(size_t n, DType wire) const = 0;
  virtual bool FixedSize() const { return true; }
  /// The decoder is one pass that writes every element: not if it scatters.
  virtual bool Dense() const { return true; }

  /*!
   * \brief Encodes n elements of `gradient` (+ residual) into `payload`, and updates the residual
   *        in the same pass.
   * \param gradient n elements of type `dtype`; not modified. Any alignment that dtype allows.
   * \param dtype element type of `gradient`
   * \param state of this encode task; made by the caller, empty at first. If it holds a residual
   * left by another codec (see SettleResidual), that is taken over, so nothing is lost.
   * \param payload MaxPayloadBytes(n, wire) bytes, 64-byte aligned
   * \param wire element type on the wire; only codecs that lose nothing look at it: they encode the
   *        gradient, and sums, in it, as the identity does
   * \return bytes written
   */
  virtual size_t Encode(const void* gradient, DType dtype, size_t n, CodecState* state,
                        uint8_t* payload, DType wire) const = 0;

  void SettleResidual(CodecState* state, size_t n) const { Settle(state, n); }

  /// \throw ProtocolError unless the payload is a well-formed one of n elements. Must be called
  ///        before the functions below, which trust it; never reads past `payload`.
  virtual void Check(const Payload& payload, size_t n, DType wire) const;

  /// out[i] = decoded value i, converted to `dtype` (round to nearest even).
  virtual void Decode(const Payload& payload, size_t n, DType wire, void* out, DType dtype) const = 0;

  /*!
   * \brief sum[i] = ((p0[i] + p1[i]) + p2[i]) + ... in float32, in the order given.
   *
   * That order is the definition; a codec whose values are a unit times integers (2bit, 1bit, tbq)
   * adds the integers and multiplies once, which is then the definition of its merge. `sum` is
   * overwritten.
   * \param count at least 1
   */
  virtual void DecodeSum(const Payload* payloads, size_t count, size_t n, DType wire,
                         float* sum) const = 0;

  /// The codec a server uses to re-encode the sum of `count` payloads of this one: same format,
  /// scaled so that such a sum is in range (2bit: threshold * count). Null means: this one itself.
  virtual std::shared_ptr<const Codec> ForSumOf(int count) const { return nullptr; }

  /// This codec, but calls on large partitions use so many threads; results do not depend on it.
  /// Null means: this one itself.
  virtual std::shared_ptr<const Codec> OnThreads(int threads) const { return nullptr; }
};

using CodecPtr = std::shared_ptr<const Codec>;

/// Not a user's parameter: Config() of a generated codec has the digest of its algorithm under this
/// name, so that nodes with different texts of one algorithm refuse each other's payloads.
constexpr char kSpecParam[] = "spec";

/// A parameter of every codec but the identity: 1 adds the entropy stage (entropy.cc).
constexpr char kEntropyParam[] = "entropy";
/// \throw Error if `codec` is the identity, which the engine must recognize
CodecPtr WithEntropy(CodecPtr codec);

/// Entry of the registry, for messages and `hipress codecs`.
struct CodecInfo {
  std::string name;
  std::string summary;          ///< one line
  std::vector<std::string> params;  ///< parameter names it accepts
  std::string param_doc;        ///< names, types, defaults, ranges
  std::function<CodecPtr(const ParamList& params)> make;
  std::string spec;             ///< digest of a compiled algorithm's meaning
};

/// All registered codecs, in name order. A copy, because other threads may load codecs.
std::vector<CodecInfo> Codecs();
/// Adds a codec, in a static initializer or when a library is loaded. Does nothing if an algorithm
/// of the same name and digest is registered.
/// \throw Error if another codec has its name
bool RegisterCodec(CodecInfo info);

/*!
 * \brief Makes a codec from a type name and its parameters. \throw Error that lists what is
 * allowed, for an unknown type, an unknown parameter, a value of the wrong type or out of range.
 */
CodecPtr MakeCodec(const std::string& type, const ParamList& params);
/// Makes a codec from its Config(), e.g. read off the wire.
CodecPtr MakeCodec(const std::string& config);
/// The pairs of a text like Codec::Config(): "a=1 b=2".
ParamList SplitConfig(const std::string& config);
/// The codec that changes nothing ("none").
CodecPtr IdentityCodec();

/// Shortest decimal text that reads back as exactly this float.
std::string ExactText(float value);

/// 64-bit digest (XXH3) of a Codec::Config() text; payload headers carry it.
uint64_t Digest(const std::string& config);

}  // namespace hipress
