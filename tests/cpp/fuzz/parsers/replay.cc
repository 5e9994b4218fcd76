// Runs a target without libFuzzer: on its seeds, on random variants of them, and on files.
//
//   TARGET [--write FOLDER] [--variants N] [FILE...]    --write: the seeds as files, for libFuzzer
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "fuzz.h"

namespace {

void Run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

/// A few bytes changed, cut off, doubled or replaced by a number at the edge of its range.
std::string Variant(std::string input, std::mt19937* dice) {
  static const uint64_t edges[] = {0, 1, 0x7f, 0xff, 0x7fffffff, 0xffffffff, 1ull << 48,
                                   0x7fffffffffffffff, 0xffffffffffffffff};
  for (int changes = 1 + int((*dice)() % 4); changes > 0 && !input.empty(); --changes) {
    const size_t at = (*dice)() % input.size();
    switch ((*dice)() % 5) {
      case 0: input[at] = char((*dice)()); break;
      case 1: input.resize(at); break;
      case 2: input.insert(at, input.substr(at, (*dice)() % 64)); break;
      case 3: input.erase(at, (*dice)() % 16); break;
      default: {
        const uint64_t edge = edges[(*dice)() % std::size(edges)];
        const size_t aligned = at / 8 * 8;
        const size_t bytes = size_t(1) << ((*dice)() % 4);
        if (aligned + bytes <= input.size()) std::memcpy(&input[aligned], &edge, bytes);
      }
    }
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  long variants = 20000;
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--write" && i + 1 < argc) {
      int number = 0;
      const std::string folder = argv[++i];
      for (const std::string& seed : Seeds()) {
        std::ofstream(folder + "/seed" + std::to_string(number++), std::ios::binary) << seed;
      }
      return number > 0 ? 0 : 1;
    }
    if (word == "--variants" && i + 1 < argc) {
      variants = std::atol(argv[++i]);
    } else {
      std::ifstream file(word, std::ios::binary);
      if (!file) return std::fprintf(stderr, "cannot read %s\n", argv[i]), 1;
      Run(std::string(std::istreambuf_iterator<char>(file), {}));
      ++files;
    }
  }
  const std::vector<std::string> seeds = Seeds();
  for (const std::string& seed : seeds) Run(seed);
  std::mt19937 dice(1);
  for (long i = 0; i < variants; ++i) Run(Variant(seeds[dice() % seeds.size()], &dice));
  std::printf("%zu seeds, %ld variants, %d files\n", seeds.size(), variants, files);
}
