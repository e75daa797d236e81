#include "runtime/storage/host_window.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tiny_run.h"

namespace snug::runtime {
namespace {

using testing::TinyRun;

constexpr int64_t kPieceBytes = 96;

std::string piece_of(char letter) { return std::string(static_cast<size_t>(kPieceBytes), letter); }

// Pieces of a tensor's bytes, one after the other.
class HostWindows : public ::testing::Test {
 protected:
  void write(HostWindow& window, int64_t piece, char letter) {
    std::memcpy(window.open(tensor().data + piece * kPieceBytes, kPieceBytes),
                piece_of(letter).data(), static_cast<size_t>(kPieceBytes));
  }
  const backends::Buffer& tensor() { return run_.executor().tensor("model.embed_tokens.weight"); }
  std::string start(int64_t pieces) {
    return run_.bytes(tensor()).substr(0, static_cast<size_t>(pieces * kPieceBytes));
  }

  TinyRun run_;
};

// More pieces than the ring has stages, none waited for by the writer.
TEST_F(HostWindows, a_stage_is_free_again_when_its_copy_is_done) {
  std::string expected;
  {
    HostWindow window(run_.executor(), program::ProgramName::load, 0);
    for (int64_t piece = 0; piece < 7; ++piece) {
      const auto letter = static_cast<char>('a' + piece);
      write(window, piece, letter);
      window.close();
      expected += piece_of(letter);
    }
  }
  EXPECT_EQ(start(7), expected);
}

TEST_F(HostWindows, what_is_open_together_lies_apart) {
  HostWindow window(run_.executor(), program::ProgramName::load, 0);
  write(window, 0, 'x');
  write(window, 1, 'y');
  window.close();
  write(window, 2, 'z');
  window.close();
  EXPECT_EQ(start(3), piece_of('x') + piece_of('y') + piece_of('z'));
}

// The next window has the same memory, and so have the batches of the programs that follow.
TEST_F(HostWindows, all_is_in_place_when_a_window_ends) {
  for (int64_t piece = 0; piece < 3; ++piece) {
    HostWindow window(run_.executor(), program::ProgramName::load, 0);
    write(window, piece, static_cast<char>('a' + piece));
    window.close();
  }
  EXPECT_EQ(start(3), piece_of('a') + piece_of('b') + piece_of('c'));
}

TEST_F(HostWindows, reading_comes_behind_writing) {
  HostWindow window(run_.executor(), program::ProgramName::load, 0);
  for (const char letter : {'k', 'l'}) {
    write(window, 0, letter);
    window.close();
    const std::byte* const read = window.read(tensor().data, kPieceBytes);
    EXPECT_EQ(std::memcmp(read, piece_of(letter).data(), static_cast<size_t>(kPieceBytes)), 0);
  }
}

}  // namespace
}  // namespace snug::runtime
