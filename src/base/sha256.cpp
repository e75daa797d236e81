#include "base/sha256.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdint>

namespace snug::base {
namespace {

using State = std::array<uint32_t, 8>;

constexpr size_t kBlockBytes = 64;

// The first 32 bits of the fractions of the roots of the first primes: of square roots for the
// initial state, of cube roots for the rounds (FIPS 180-4, 4.2.2 and 5.3.3). The root of p is the
// largest integer whose power is at most p times 2^(32 * degree).
template <size_t kCount, unsigned kDegree>
constexpr std::array<uint32_t, kCount> prime_root_fractions() {
  std::array<uint32_t, kCount> fractions{};
  size_t found = 0;
  for (uint32_t candidate = 2; found < kCount; ++candidate) {
    bool is_prime = true;
    for (uint32_t factor = 2; factor * factor <= candidate; ++factor)
      if (candidate % factor == 0) is_prime = false;
    if (!is_prime) continue;
    // Bit by bit, from a root below 2^5 with 32 bits of fraction. Powers take up to 111 bits.
    __extension__ using Wide = unsigned __int128;
    uint64_t root = 0;
    for (int bit = 36; bit >= 0; --bit) {
      const uint64_t larger = root | (uint64_t{1} << bit);
      Wide power = 1;
      for (unsigned i = 0; i < kDegree; ++i) power *= larger;
      if (power <= (static_cast<Wide>(candidate) << (32 * kDegree))) root = larger;
    }
    fractions[found++] = static_cast<uint32_t>(root);
  }
  return fractions;
}

constexpr State kInitial = prime_root_fractions<8, 2>();
constexpr std::array<uint32_t, 64> kRounds = prime_root_fractions<64, 3>();

void add_block(State& state, std::string_view block) {
  std::array<uint32_t, 64> words{};
  for (size_t i = 0; i < kBlockBytes; ++i)
    words[i / 4] = (words[i / 4] << 8U) | static_cast<unsigned char>(block[i]);
  for (size_t i = 16; i < words.size(); ++i) {
    const uint32_t a = words[i - 15];
    const uint32_t b = words[i - 2];
    words[i] = words[i - 16] + words[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3U)) +
               (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10U));
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < words.size(); ++i) {
    const uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                           ((e & f) ^ (~e & g)) + kRounds[i] + words[i];
    const uint32_t second =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const State sums = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < state.size(); ++i) state[i] += sums[i];
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  State state = kInitial;
  size_t done = 0;
  for (; bytes.size() - done >= kBlockBytes; done += kBlockBytes)
    add_block(state, bytes.substr(done, kBlockBytes));
  // The last block or two: what is left, a one bit, zeros, and the number of bits.
  std::string rest(bytes.substr(done));
  rest += '\x80';
  while (rest.size() % kBlockBytes != kBlockBytes - 8) rest += '\0';
  const uint64_t bits = uint64_t{bytes.size()} * 8;
  for (int shift = 56; shift >= 0; shift -= 8) rest += static_cast<char>((bits >> shift) & 0xFFU);
  for (size_t i = 0; i < rest.size(); i += kBlockBytes)
    add_block(state, std::string_view(rest).substr(i, kBlockBytes));
  std::string digest;
  for (const uint32_t word : state) digest += fmt::format("{:08x}", word);
  return digest;
}

}  // namespace snug::base
