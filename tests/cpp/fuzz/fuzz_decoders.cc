/*!
 * \file fuzz_decoders.cc
 * \brief Feeds malformed payloads to every decoder, through the C ABI.
 *
 *   fuzz_decoders [--payloads N] [--seconds S] [--seed K] [--type NAME]
 *
 * For each codec, N payloads (a million) or as many as fit into its share of S seconds: valid ones
 * with bytes changed, words replaced by numbers that overflow, cut off, extended, spliced, or
 * random; decoded as gradients of the right and of other sizes. Payloads end, or begin, where
 * memory that nobody may touch begins, and so do decoded gradients: reading or writing a byte too
 * far ends the program even without a sanitizer. What is accepted must decode the same twice, and
 * as a sum of one. With AddressSanitizer and UBSan (make fuzz) it also sees what happens inside.
 */
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "hipress/c_api.h"

namespace {

constexpr int64_t kMaxElements = 2048;
constexpr size_t kRoom = size_t(64) << 10;  // at least what kMaxElements need, and more

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "fuzz_decoders: %s\n", what.c_str());
  std::exit(1);
}

/// Memory between two pages that may not be touched.
class Guarded {
 public:
  Guarded() {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* all = mmap(nullptr, kRoom + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) Die("mmap failed");
    begin_ = static_cast<uint8_t*>(all) + page;
    if (mprotect(begin_, kRoom, PROT_READ | PROT_WRITE) != 0) Die("mprotect failed");
  }

  /// `bytes` bytes that end (or, at_end false, begin) at a guard.
  uint8_t* Place(size_t bytes, bool at_end) const {
    if (bytes > kRoom) Die("a payload is too large for the harness");
    return at_end ? begin_ + kRoom - bytes : begin_;
  }

 private:
  uint8_t* begin_;
};

using Params = std::vector<std::pair<std::string, std::string>>;

struct Target {
  std::string type;
  Params params;
};

/// Every codec, with the parameters that change the layout of its payloads, alone and with the
/// entropy stage behind it.
std::vector<Target> Targets(const std::string& only) {
  const char* text = nullptr;
  if (HipressCodecNames(&text) != 0) Die(HipressGetLastError()->sentence);
  std::vector<Target> targets;
  const std::string names = text;
  for (size_t at = 0; at <= names.size();) {
    const size_t end = std::min(names.find('\n', at), names.size());
    const std::string type = names.substr(at, end - at);
    at = end + 1;
    if (!only.empty() && type != only) continue;
    if (type == "maxmin" || type == "maxminef") {
      for (int bits = type == "maxmin" ? 1 : 2; bits <= 8; ++bits) {
        targets.push_back({type, {{"bits", std::to_string(bits)}, {"bucket", "64"}}});
      }
    } else if (type == "terngrad") {
      for (const char* bits : {"1", "2", "4", "8"}) targets.push_back({type, {{"bitwidth", bits}}});
    } else if (type == "dgc" || type == "topk" || type == "randomk") {
      targets.push_back({type, {{"ratio", "0.1"}}});
    } else if (type == "sparseloco") {
      for (const char* ratio : {"0.015625", "0.2"}) targets.push_back({type, {{"ratio", ratio}}});
    } else if (type == "dct") {
      for (const char* bits : {"1", "2", "8"}) targets.push_back({type, {{"bits", bits}, {"ratio", "0.2"}}});
    } else if (type == "graddrop") {
      targets.push_back({type, {{"drop", "0.8"}}});
    } else {
      targets.push_back({type, {}});
    }
  }
  if (targets.empty()) Die("there is no codec " + only);
  for (size_t plain = targets.size(), t = 0; t < plain; ++t) {
    if (targets[t].type == "none") continue;
    targets.push_back(targets[t]);
    targets.back().params.emplace_back("entropy", "1");
  }
  return targets;
}

class Fuzzer {
 public:
  Fuzzer(const Target& target, uint64_t seed) : random_(seed), type_(target.type) {
    std::vector<const char*> keys = {"type"}, values = {target.type.c_str()};
    for (const auto& param : target.params) {
      keys.push_back(param.first.c_str());
      values.push_back(param.second.c_str());
    }
    Must(HipressCodecCreate(static_cast<int>(keys.size()), keys.data(), values.data(), &codec_));
    HipressCodecDescription about;
    Must(HipressCodecDescribe(codec_, &about));
    config_ = about.config;
    states_ = about.num_states;
    for (int i = 0; i < 64; ++i) seeds_.push_back(Valid());
  }
  ~Fuzzer() { HipressCodecFree(codec_); }

  const std::string& config() const { return config_; }
  int64_t refused() const { return refused_; }
  int64_t accepted() const { return accepted_; }

  /// Makes one malformed payload and decodes it.
  void Step() {
    const Sample& sample = seeds_[Below(seeds_.size())];
    std::vector<uint8_t> bytes = Mutated(sample);
    int64_t n = sample.n;
    if (Below(16) == 0) n = static_cast<int64_t>(Below(kMaxElements));
    if (Below(16) == 0) n += static_cast<int64_t>(Below(3)) - 1;
    n = std::max<int64_t>(n, 0);
    const bool at_end = Below(4) != 0;
    uint8_t* payload = payload_.Place(bytes.size(), at_end);
    if (!bytes.empty()) std::memcpy(payload, bytes.data(), bytes.size());
    const size_t size = static_cast<size_t>(n) * sizeof(float);
    uint8_t* out = out_.Place(size, at_end);
    const auto length = static_cast<int64_t>(bytes.size());
    if (HipressCodecDecode(codec_, payload, length, n, 0, out) != 0) {
      if (*HipressGetLastError()->sentence == '\0') Die(config_ + ": an error without a sentence");
      ++refused_;
      return;
    }
    ++accepted_;
    first_.assign(out, out + size);
    const void* payloads[] = {payload};
    Must(HipressCodecDecodeSum(codec_, 1, payloads, &length, n, 0, reinterpret_cast<float*>(out)));
    for (int64_t i = 0; i < n; ++i) {
      float one, sum;
      std::memcpy(&one, first_.data() + 4 * i, 4);
      std::memcpy(&sum, out + 4 * i, 4);
      // Not by bits: a NaN may change its payload, and a sum of integer levels the sign of its 0.
      if (one != sum && !(one != one && sum != sum)) {
        Die(config_ + ": decoded " + std::to_string(one) + ", as a sum " + std::to_string(sum));
      }
    }
  }

 private:
  struct Sample {
    int64_t n;
    std::vector<uint8_t> bytes;
  };

  void Must(int code) const {
    if (code != 0) Die(type_ + ": " + HipressGetLastError()->sentence);
  }

  size_t Below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  Sample Valid() {
    // Mostly small: the faster, and the nearer to an edge. What is small is not entropy-coded.
    const size_t limits[] = {4, 70, 70, 150, 150, 150, 400, kMaxElements};
    const bool entropy = config_.find(" entropy=1") != std::string::npos;
    Sample sample = {static_cast<int64_t>(Below(limits[entropy ? 7 : Below(8)])), {}};
    std::vector<float> gradient(static_cast<size_t>(sample.n));
    std::normal_distribution<float> normal;
    for (float& value : gradient) value = std::pow(normal(random_), entropy ? 7.0f : 1.0f);
    if (!gradient.empty() && Below(10) == 0) {
      gradient[Below(gradient.size())] = std::numeric_limits<float>::quiet_NaN();
    }
    std::vector<std::vector<float>> states(static_cast<size_t>(states_), gradient);
    std::vector<float*> pointers;
    for (auto& state : states) pointers.push_back(state.data());
    int64_t bytes = 0;
    Must(HipressCodecMaxBytes(codec_, sample.n, 0, &bytes));
    sample.bytes.resize(static_cast<size_t>(bytes) + 64);
    Must(HipressCodecEncodeWith(codec_, gradient.data(), sample.n, 0, states_, pointers.data(), 0, 0,
                                sample.bytes.data(), &bytes));
    sample.bytes.resize(static_cast<size_t>(bytes));
    return sample;
  }

  std::vector<uint8_t> Mutated(const Sample& sample) {
    std::vector<uint8_t> bytes = sample.bytes;
    switch (Below(8)) {
      case 0:  // random bytes, of the right length or another
        if (Below(2) == 0) bytes.resize(Below(bytes.size() + 64));
        for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_());
        return bytes;
      case 1:
        bytes.resize(Below(bytes.size() + 1));
        return bytes;
      case 2:
        for (size_t more = 1 + Below(64); more > 0; --more) {
          bytes.push_back(static_cast<uint8_t>(random_()));
        }
        return bytes;
      case 3: {  // the beginning of one, the end of another
        const std::vector<uint8_t>& other = seeds_[Below(seeds_.size())].bytes;
        const size_t cut = Below(std::min(bytes.size(), other.size()) + 1);
        std::copy_n(other.begin(), cut, bytes.begin());
        return bytes;
      }
      case 4:
        for (size_t times = 1 + Below(16); times > 0 && !bytes.empty(); --times) {
          bytes[Below(bytes.size())] ^= static_cast<uint8_t>(1u << Below(8));
        }
        return bytes;
      default:
        for (size_t times = 1 + Below(4); times > 0 && bytes.size() >= 4; --times) {
          // Fields come first, in whole words.
          const size_t words = bytes.size() / 4;
          const size_t at = 4 * Below(Below(2) == 0 ? words : std::min<size_t>(words, 4));
          const uint32_t word = Interesting(sample.n);
          std::memcpy(&bytes[at], &word, 4);
        }
        return bytes;
    }
  }

  uint32_t Interesting(int64_t n) {
    const uint32_t values[] = {
        0, 1, static_cast<uint32_t>(n), static_cast<uint32_t>(n) - 1, static_cast<uint32_t>(n) + 1,
        0x7fffffffu, 0x80000000u, 0xffffffffu, 0x40000000u, 0x20000001u,
        0x7fc00000u /* NaN */, 0x7f800000u /* Inf */, 0xff800000u, 0x00000001u /* denormal */,
        static_cast<uint32_t>(Below(300)) /* of bytes, as gaps are packed */,
        0x7f7fffffu /* the largest */, 0xbf800000u /* -1 */, static_cast<uint32_t>(random_())};
    return values[Below(sizeof(values) / sizeof(values[0]))];
  }

  std::mt19937_64 random_;
  const std::string type_;
  HipressCodecHandle codec_ = nullptr;
  std::string config_;
  int states_ = 0;
  std::vector<Sample> seeds_;
  std::vector<uint8_t> first_;
  const Guarded payload_, out_;
  int64_t refused_ = 0, accepted_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  int64_t payloads = 1000000;
  double seconds = std::numeric_limits<double>::infinity();
  uint64_t seed = 1;
  std::string type;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--payloads") {
      payloads = std::atoll(argv[i + 1]);
    } else if (flag == "--seconds") {
      seconds = std::atof(argv[i + 1]);
    } else if (flag == "--seed") {
      seed = static_cast<uint64_t>(std::atoll(argv[i + 1]));
    } else if (flag == "--type") {
      type = argv[i + 1];
    } else {
      Die("flags are --payloads, --seconds, --seed and --type, not " + flag);
    }
  }
  const std::vector<Target> targets = Targets(type);
  const double share = seconds / static_cast<double>(targets.size());
  int64_t all = 0;
  for (const Target& target : targets) {
    Fuzzer fuzzer(target, seed);
    const auto start = std::chrono::steady_clock::now();
    int64_t done = 0;
    double elapsed = 0;
    while (done < payloads && elapsed < share) {
      for (int i = 0; i < 1000 && done < payloads; ++i, ++done) fuzzer.Step();
      elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    all += done;
    std::printf("%9lld payloads, %9lld refused, %8lld decoded, %6.1f s: %s\n",
                static_cast<long long>(done), static_cast<long long>(fuzzer.refused()),   // NOLINT
                static_cast<long long>(fuzzer.accepted()), elapsed, fuzzer.config().c_str());  // NOLINT
    std::fflush(stdout);
  }
  std::printf("%lld payloads, no crash\n", static_cast<long long>(all));  // NOLINT
  return 0;
}
