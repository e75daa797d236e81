// Attention that cuDNN does: what is planned for it is what it takes, whatever its version.
#include <gtest/gtest.h>

#include <cstdlib>

#include "../base/captured_stream.h"
#include "backends/cuda/attention/attention_needs.h"
#include "backends/cuda/attention/segment_attention.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/device/hardware_table.h"
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
constexpr const char* kEmptySegments = "SNUG_CUDNN_EMPTY_SEGMENTS";

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

bool has_empty_segment(const OperationCase& made) {
  const program::OperationView view = made.view();
  const auto bounds = made.operation().kind() == Kind::attention
                          ? id_of(view.operation, Attention::kQBounds)
                          : id_of(view.operation, AttentionGrad::kQBounds);
  const Values& values = made.inputs.at(bounds);
  for (size_t s = 0; s < values.size(); s += 2)
    if (values[s] == values[s + 1]) return true;
  return false;
}

// Whether the operation says that it has none.
bool has_no_empty_segments(const OperationCase& made) {
  const auto& attributes = made.operation().attributes;
  if (const auto* attention = attributes.get_if<Attention>()) return attention->no_empty_segments;
  return attributes.get<AttentionGrad>().no_empty_segments;
}

OperationCase without_empty_segments(OperationCase made) {
  auto& attributes = made.program.operations[0].attributes;
  if (auto* attention = attributes.get_if<Attention>()) attention->no_empty_segments = true;
  if (auto* grad = attributes.get_if<AttentionGrad>()) grad->no_empty_segments = true;
  return made;
}

class LibraryAttention : public ::testing::Test {
 protected:
  void SetUp() override { cuda_emulator::attention_version = cuda::kCudnnWithEmptySegments; }
  void TearDown() override {
    cuda_emulator::attention_version = cuda::kCudnnWithEmptySegments;
    unsetenv(kEmptySegments);
  }
};

// Views on wide tensors (fused q, k and v) and windows beyond every segment among them: whatever
// suits the library has its scratch planned, and a kernel.
TEST_F(LibraryAttention, takes_all_that_suits_it) {
  cuda::CudaBackend backend({});
  const cuda::Card card = cuda::card_of(*cuda::find_hardware("h100"));
  const snug::testing::CapturedStream said(stderr);
  for (const Kind kind : kKinds) {
    for (const Types& types : {kBf16, kF16}) {
      int given = 0;
      for (const OperationCase& made : cases_of(kind, types)) {
        EXPECT_EQ(is_given(backend, made), suits(made, card)) << made.name;
        if (suits(made, card)) ++given;
      }
      EXPECT_GT(given, 10) << types.name;
    }
  }
  EXPECT_EQ(said.text(), "");
}

// They go to own kernels, as all does where the library refuses (cuda_refused_attention_test.cpp).
TEST_F(LibraryAttention, keeps_empty_segments_from_an_old_version) {
  cuda_emulator::attention_version = cuda::kCudnnWithEmptySegments - 1;
  cuda::CudaBackend backend({});
  const cuda::Card card = cuda::card_of(*cuda::find_hardware("h100"));
  const snug::testing::CapturedStream said(stderr);
  int with_empty = 0;
  for (const Kind kind : kKinds) {
    for (const OperationCase& made : cases_of(kind, kBf16)) {
      EXPECT_EQ(is_given(backend, made), has_no_empty_segments(made) && suits(made, card))
          << made.name;
      if (has_empty_segment(made)) ++with_empty;
      EXPECT_EQ(is_given(backend, without_empty_segments(made)), suits(made, card)) << made.name;
    }
  }
  EXPECT_GT(with_empty, 10);
  const std::string text = said.text();
  const size_t line = text.find("segments without tokens");
  ASSERT_NE(line, std::string::npos) << text;
  EXPECT_EQ(text.find("segments without tokens", line + 1), std::string::npos) << "said twice";
}

TEST_F(LibraryAttention, gives_empty_segments_to_an_old_version_where_that_is_asked_for) {
  cuda_emulator::attention_version = cuda::kCudnnWithEmptySegments - 1;
  setenv(kEmptySegments, "on", 1);
  cuda::CudaBackend backend({});
  const cuda::Card card = cuda::card_of(*cuda::find_hardware("h100"));
  for (const Kind kind : kKinds)
    for (const OperationCase& made : cases_of(kind, kBf16))
      EXPECT_EQ(is_given(backend, made), suits(made, card)) << made.name;
}

}  // namespace
}  // namespace snug::backends::test
