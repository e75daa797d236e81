// Attention that cuDNN does: what is planned for it is what it takes, whatever its version.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include "../base/captured_stream.h"
#include "../base/temporary_folder.h"
#include "backends/cuda/attention/attention_note.h"
#include "backends/cuda/attention/cudnn_needs.h"
#include "backends/cuda/attention/library_checks.h"
#include "backends/cuda/attention/segment_attention.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/device/hardware_table.h"
#include "base/file.h"
#include "library_calls.h"
#include "operation_check.h"
#include "program/kinds/attention/attention.h"
#include "refusals.h"

namespace snug::backends::test {
namespace {

using program::Attention;
using program::AttentionGrad;
using program::Kind;

constexpr const Types& kBf16 = kAllTypes[1];
constexpr const Types& kF16 = kAllTypes[4];
static_assert(kF16.activation == program::DType::f16);
constexpr Kind kKinds[]{Kind::attention, Kind::attention_grad};
using cuda_emulator::AttentionFault;

bool suits(const OperationCase& made, const cuda::Card& card) {
  const program::OperationView view = made.view();
  const auto& attributes = view.operation.attributes;
  if (const auto* attention = attributes.get_if<Attention>())
    return cuda::suits_cudnn(*attention, view, card);
  return cuda::suits_cudnn(attributes.get<AttentionGrad>(), view, card);
}

// Whether the backend gives it to the library.
bool is_given(const Backend& backend, const OperationCase& made) {
  program::Operation decided = made.operation();
  decided.attributes = backend.decide(made.view());
  return cuda::is_by_cudnn({made.program, decided});
}

// Whether the operation says that it has none.
bool has_no_empty_segments(const OperationCase& made) {
  const auto& attributes = made.operation().attributes;
  if (const auto* attention = attributes.get_if<Attention>()) return attention->no_empty_segments;
  return attributes.get<AttentionGrad>().no_empty_segments;
}

class LibraryAttention : public ::testing::Test {
 protected:
  // Answers are kept for each test alone.
  void SetUp() override {
    if (const char* cache = std::getenv("XDG_CACHE_HOME")) cache_ = cache;
    setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
  }
  void TearDown() override {
    cuda_emulator::attention_fault = AttentionFault::none;
    cache_.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", cache_.c_str(), 1);
  }

  // Whether a backend leaves out what is wrong with this fault, and nothing else. Of all cases that
  // the library is asked for, every seventh, and those `of_interest`.
  void expect_left_out(AttentionFault fault,
                       const std::function<bool(const OperationCase&)>& is_wrong,
                       const std::function<bool(const OperationCase&)>& of_interest) {
    cuda_emulator::attention_fault = fault;
    cuda::CudaBackend backend({});
    const cuda::Card card = card_here();
    int left_out = 0;
    int asked = 0;
    for (const Kind kind : kKinds)
      for (const OperationCase& made : cases_of(kind, kBf16)) {
        if (!suits(made, card) || (asked++ % 7 != 0 && !of_interest(made))) continue;
        EXPECT_EQ(is_given(backend, made), !is_wrong(made)) << made.name;
        if (is_wrong(made)) ++left_out;
      }
    EXPECT_GT(left_out, 3);
  }

  static cuda::Card card_here() {
    cuda::Card card = cuda::card_of(*cuda::find_hardware("h100"));
    card.asks_cudnn = true;
    return card;
  }
  // The bytes of all files of answers.
  std::string kept() const {
    std::string text;
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder_.path()))
      if (file.is_regular_file()) text += base::read_text_file(file.path());
    return text;
  }

  snug::testing::TemporaryFolder folder_;
  std::string cache_;
};

// Views on wide tensors (fused q, k and v) and windows beyond every segment among them: whatever
// suits the library has its scratch planned, and a kernel.
TEST_F(LibraryAttention, takes_all_that_suits_it) {
  cuda::CudaBackend backend({});
  const cuda::Card card = card_here();
  const snug::testing::CapturedStream said(stderr);
  for (const Kind kind : kKinds) {
    int given = 0;
    for (const OperationCase& made : cases_of(kind, kind == Kind::attention ? kBf16 : kF16)) {
      EXPECT_EQ(is_given(backend, made), suits(made, card)) << made.name;
      if (suits(made, card)) ++given;
    }
    EXPECT_GT(given, 10);
  }
  EXPECT_EQ(said.text(), "");
}

int64_t segments_of(const OperationCase& made) {
  const program::OperationView view = made.view();
  return made.operation().kind() == Kind::attention ? view[Attention::kKBounds].shape[0]
                                                    : view[AttentionGrad::kKBounds].shape[0];
}

bool is_capped(const OperationCase& made) {
  const auto& attributes = made.operation().attributes;
  if (const auto* attention = attributes.get_if<Attention>()) return attention->softcap > 0;
  return attributes.get<AttentionGrad>().softcap > 0;
}
bool is_of_two(const OperationCase& made) { return segments_of(made) == 2; }

// NaN where a segment has no tokens: whatever may have some goes to own kernels, and no more.
TEST_F(LibraryAttention, keeps_empty_segments_from_a_version_that_is_wrong_next_to_them) {
  expect_left_out(
      AttentionFault::empty_segments,
      [](const OperationCase& made) {
        return !has_no_empty_segments(made) && segments_of(made) > 1;
      },
      is_of_two);
}

// Only what has more than one segment shows it.
TEST_F(LibraryAttention, keeps_later_segments_from_a_version_that_is_wrong_in_them) {
  expect_left_out(
      AttentionFault::later_segments,
      [](const OperationCase& made) { return segments_of(made) > 1; }, is_of_two);
}

TEST_F(LibraryAttention, keeps_soft_caps_from_a_version_that_forgets_them) {
  expect_left_out(AttentionFault::no_cap, is_capped, is_capped);
}

// Whether a window hides keys of the longest segment.
bool has_window(const OperationCase& made) {
  const auto hides = [](const auto& attention) {
    return attention.window > 0 && attention.window < attention.segment_tokens;
  };
  const auto& attributes = made.operation().attributes;
  if (const auto* attention = attributes.get_if<Attention>()) return hides(*attention);
  return hides(attributes.get<AttentionGrad>());
}

// The check's segments are shorter than the job's, and its window as well.
TEST_F(LibraryAttention, keeps_windows_from_a_version_that_forgets_them) {
  expect_left_out(AttentionFault::no_window, has_window, has_window);
}

const OperationCase& first_given(const std::vector<OperationCase>& cases, const cuda::Card& card) {
  return *std::ranges::find_if(cases, [&](const OperationCase& made) { return suits(made, card); });
}

// A check runs once for a form, card, driver, library and build, and its answer outlives the
// process; another library is asked anew. A form whose check did not end is checked once more.
TEST_F(LibraryAttention, keeps_its_answers) {
  const std::vector<OperationCase> cases = cases_of(Kind::attention_grad, kBf16);
  const OperationCase& made = first_given(cases, card_here());
  const auto calls_of_deciding = [&](bool expected) {
    const uint64_t before = cuda_emulator::library_calls;
    cuda::CudaBackend backend({});
    EXPECT_EQ(is_given(backend, made), expected);
    return cuda_emulator::library_calls - before;
  };
  EXPECT_GT(calls_of_deciding(true), 0U);
  EXPECT_EQ(calls_of_deciding(true), 0U) << "it was asked again";
  EXPECT_NE(kept().find("\"agrees\": true"), std::string::npos) << kept();
  cuda_emulator::attention_fault = AttentionFault::no_cap;  // another version
  EXPECT_GT(calls_of_deciding(true), 0U);

  cuda_emulator::attention_fault = AttentionFault::none;
  const auto with_answers = [&](const std::string& put) {
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder_.path())) {
      if (!file.is_regular_file()) continue;
      std::string text = base::read_text_file(file.path());
      const std::string answer = "\"agrees\": true";
      for (size_t at = 0; (at = text.find(answer, at)) != std::string::npos;)
        text.replace(at, answer.size(), put);
      base::write_file_atomically(file.path(), text);
    }
  };
  // What is no answer is asked again.
  with_answers("\"agrees\": \"yes\"");
  EXPECT_GT(calls_of_deciding(true), 0U);
  // What processes leave that ended within the check: one, and two.
  with_answers("\"begun\": 1");
  EXPECT_GT(calls_of_deciding(true), 0U);
  with_answers("\"begun\": 2");
  EXPECT_EQ(calls_of_deciding(false), 0U);
}

// Jobs that start together ask about the same forms: one checks, the others take its answer, and
// no answer is lost.
TEST_F(LibraryAttention, lets_others_wait_for_a_check) {
  constexpr int kJobs = 4;
  constexpr int kForms = 5;
  std::atomic<int> checks = 0;
  std::atomic<int> running = 0;
  std::vector<std::thread> jobs;
  jobs.reserve(kJobs);
  for (int job = 0; job < kJobs; ++job)
    jobs.emplace_back([&, job] {
      cuda::LibraryChecks answers("a machine");
      for (int i = 0; i < kForms; ++i) {
        const int form = (i + job) % kForms;
        const cuda::LibraryAnswer& answer = answers.ask(fmt::format("form {}", form), [&] {
          EXPECT_EQ(++running, 1);
          ++checks;
          std::this_thread::yield();
          --running;
          return cuda::LibraryAnswer{.agrees = true, .difference = 0.001 * form};
        });
        EXPECT_EQ(answer.difference, 0.001 * form);
      }
    });
  for (std::thread& job : jobs) job.join();
  EXPECT_EQ(checks, kForms);
  EXPECT_EQ(kept().find("begun"), std::string::npos) << kept();
}

// The log says who computes an attention, and why; each once.
TEST_F(LibraryAttention, says_who_computes_it) {
  const auto said_of = [&](const OperationCase& made) {
    cuda::CudaBackend backend({});
    program::Program program = made.program;
    program.operations[0].attributes = backend.decide(made.view());
    cuda::CudaContext context;
    for (int i = 0; i < 2; ++i) cuda::note_attention({program, program.operations[0]}, context);
    const snug::testing::CapturedStream said(stderr);
    for (int i = 0; i < 2; ++i) context.library_checks.say_notes();
    return said.text();
  };
  const std::vector<OperationCase> cases = cases_of(Kind::attention, kBf16);
  const std::string by_library = said_of(first_given(cases, card_here()));
  EXPECT_TRUE(snug::testing::contains(by_library, ": cuDNN emulated 0, which agrees with own"))
      << by_library;
  EXPECT_EQ(std::ranges::count(by_library, '\n'), 1) << by_library;

  const std::vector<OperationCase> gradients = cases_of(Kind::attention_grad, kBf16);
  const auto is_ordered = [](const OperationCase& made) {
    const auto& grad = made.operation().attributes.get<AttentionGrad>();
    return grad.deterministic && grad.segment_tokens > 0;
  };
  EXPECT_TRUE(snug::testing::contains(said_of(*std::ranges::find_if(gradients, is_ordered)),
                                      "own kernels, since the gradient is to be deterministic"));
  cuda_emulator::attention_fault = AttentionFault::later_segments;
  const auto is_packed = [&](const OperationCase& made) {
    return suits(made, card_here()) && segments_of(made) > 1;
  };
  EXPECT_TRUE(snug::testing::contains(said_of(*std::ranges::find_if(cases, is_packed)),
                                      "own kernels are planned for it, since cuDNN emulated 2"));
}

}  // namespace
}  // namespace snug::backends::test
