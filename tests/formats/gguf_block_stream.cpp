// Blocks of GGUF files on pipes, for scripts/oracles/check_gguf_blocks:
//
//   gguf_block_stream quantise TYPE      f32 values in, blocks out
//   gguf_block_stream dequantise TYPE    blocks in, f32 values out
//   gguf_block_stream time TYPE TIMES    f32 values in; the seconds of each quantisation, a line
//   each
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.h"
#include "formats/gguf/blocks.h"

namespace {

using snug::formats::GgmlType;

std::vector<std::byte> read_all() {
  std::vector<std::byte> bytes;
  std::byte chunk[1 << 16];
  while (const size_t count = std::fread(chunk, 1, sizeof chunk, stdin))
    bytes.insert(bytes.end(), chunk, chunk + count);
  return bytes;
}

std::span<const float> as_floats(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

std::vector<std::byte> blocks_for(GgmlType type, std::span<const float> values) {
  return std::vector<std::byte>(
      static_cast<size_t>(snug::formats::stored_bytes(type, std::ssize(values))));
}

void quantise(GgmlType type) {
  const auto bytes = read_all();
  auto blocks = blocks_for(type, as_floats(bytes));
  snug::formats::quantise_blocks(type, as_floats(bytes), blocks);
  std::fwrite(blocks.data(), 1, blocks.size(), stdout);
}

void dequantise(GgmlType type) {
  const auto blocks = read_all();
  const auto [elements, bytes] = snug::formats::block_size(type);
  std::vector<float> values(blocks.size() / static_cast<size_t>(bytes) *
                            static_cast<size_t>(elements));
  snug::formats::dequantise_blocks(type, blocks, values);
  std::fwrite(values.data(), sizeof(float), values.size(), stdout);
}

void time(GgmlType type, int times) {
  using Clock = std::chrono::steady_clock;
  const auto bytes = read_all();
  auto blocks = blocks_for(type, as_floats(bytes));
  for (int i = 0; i < times; ++i) {
    const auto start = Clock::now();
    snug::formats::quantise_blocks(type, as_floats(bytes), blocks);
    std::printf("%.6f\n", std::chrono::duration<double>(Clock::now() - start).count());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto type = words.size() < 2 ? std::nullopt : snug::base::from_word<GgmlType>(words[1]);
  if (!type) return 2;
  if (words[0] == "quantise") quantise(*type);
  if (words[0] == "dequantise") dequantise(*type);
  if (words[0] == "time" && words.size() == 3) time(*type, std::atoi(words[2].c_str()));
  return 0;
}
