// Which attentions cuDNN does (backends/cuda/attention/attention_needs.h), and that what it needs
// is planned.
#include <gtest/gtest.h>

#include <functional>

#include "backends/cuda/attention/cudnn_needs.h"
#include "backends/cuda/device/hardware_table.h"
#include "backends/cuda/needs/kind_needs.h"
#include "program/ir/builder.h"
#include "program/kinds/attention/attention.h"
#include "program/kinds/kind.h"

namespace snug::backends::cuda {
namespace {

using program::Attention;
using program::AttentionGrad;
using program::Builder;
using program::DType;
using program::Program;
using program::Shape;
using program::TensorId;

constexpr int64_t kTokens = 256;
constexpr int64_t kSegments = 4;

// What a change of one thing turns into an attention that own kernels do.
struct Job {
  Attention attention{
      .heads = 4, .kv_heads = 2, .head_dim = 64, .segment_tokens = 128, .deterministic = false};
  DType dtype = DType::bf16;
  int64_t segments = kSegments;
  bool own_key_bounds = false;
  Card card = card_of(*find_hardware("h100"));
};

// The forward operation, then its gradient.
Program program_of(const Job& job) {
  Builder builder("attention");
  const Attention& form = job.attention;
  const Shape q_shape{kTokens, form.heads * form.head_dim};
  const Shape k_shape{kTokens, form.kv_heads * form.head_dim};
  const auto tensor = [&](const char* name, const Shape& shape) {
    return builder.activation(name, shape, job.dtype);
  };
  const TensorId q = tensor("q", q_shape);
  const TensorId k = tensor("k", k_shape);
  const TensorId v = tensor("v", k_shape);
  const TensorId o = tensor("o", q_shape);
  const TensorId lse = builder.activation("lse", {form.heads, kTokens}, DType::f32);
  const TensorId bounds = builder.activation("bounds", {job.segments, 2}, DType::i32);
  const TensorId key_bounds =
      job.own_key_bounds ? builder.activation("key_bounds", {job.segments, 2}, DType::i32) : bounds;
  std::vector<TensorId> reads{q, k, v, bounds, key_bounds};
  if (form.sinks) reads.push_back(tensor("sinks", {form.heads}));
  const auto append_bias = [&](std::vector<TensorId>& ids) {
    if (form.relative_bias) ids.push_back(tensor("bias", {32, form.heads}));
  };
  append_bias(reads);
  builder.emit(form, reads, {o, lse});
  const AttentionGrad grad{.heads = form.heads,
                           .kv_heads = form.kv_heads,
                           .head_dim = form.head_dim,
                           .scale = form.scale,
                           .causal = form.causal,
                           .window = form.window,
                           .softcap = form.softcap,
                           .alibi_scale = form.alibi_scale,
                           .sinks = form.sinks,
                           .relative_bias = form.relative_bias,
                           .max_distance = form.max_distance,
                           .segment_tokens = form.segment_tokens,
                           .deterministic = form.deterministic};
  const TensorId d_o = tensor("do", q_shape);
  std::vector<TensorId> grad_reads{d_o, q, k, v, o, lse, bounds, key_bounds};
  append_bias(grad_reads);
  builder.emit(grad, grad_reads,
               {tensor("dq", q_shape), tensor("dk", k_shape), tensor("dv", k_shape)});
  return builder.take();
}

struct Choice {
  bool forward, gradient;
  bool operator==(const Choice&) const = default;
};

Choice choice_of(const Job& job) {
  const Program program = program_of(job);
  const auto& operations = program.operations;
  return {
      suits_cudnn(operations[0].attributes.get<Attention>(), {program, operations[0]}, job.card),
      suits_cudnn(operations[1].attributes.get<AttentionGrad>(), {program, operations[1]},
                  job.card)};
}

TEST(CudnnChoice, takes_training_in_16_bits) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    Job job;
    job.dtype = dtype;
    EXPECT_EQ(choice_of(job), (Choice{true, true})) << base::name_of(dtype);
  }
}

TEST(CudnnChoice, leaves_a_deterministic_gradient_to_own_kernels) {
  Job job;
  job.attention.deterministic = true;
  EXPECT_EQ(choice_of(job), (Choice{true, false}));
}

// On a GPU that is not here, what NVIDIA documents; one that is here is asked.
TEST(CudnnChoice, takes_heads_as_they_are_documented) {
  const auto gradient = [](const char* name, int64_t dims, bool is_here) {
    Job job;
    job.card = card_of(*find_hardware(name));
    job.card.asks_cudnn = is_here;
    job.attention.head_dim = dims;
    EXPECT_TRUE(choice_of(job).forward) << name << " " << dims;
    return choice_of(job).gradient;
  };
  for (const int64_t dims : {64, 80, 96, 128, 160, 192, 256}) {
    EXPECT_TRUE(gradient("h100", dims, false)) << dims;
    EXPECT_EQ(gradient("b200", dims, false), dims <= 128) << dims;
    EXPECT_TRUE(gradient("b200", dims, true)) << dims;
  }
  EXPECT_FALSE(gradient("h100", 32, true)) << "it ended a process on a card";
  EXPECT_FALSE(gradient("h100", 72, true)) << "it asks for four times the scratch";
}

TEST(CudnnChoice, takes_causal_soft_caps_and_windows) {
  Job job;
  job.attention.softcap = 50;
  job.attention.window = 32;
  EXPECT_EQ(choice_of(job), (Choice{true, true}));
  job.attention.causal = false;
  EXPECT_EQ(choice_of(job), (Choice{false, false}));
}

// Rows of very unlike documents: each group's room is at most eight times the tokens.
TEST(SegmentBuckets, hold_every_length_with_little_room) {
  EXPECT_EQ(segment_buckets(2, 8192, 16384), (std::vector<SegmentBucket>{{0, 8192, 2}}));
  EXPECT_EQ(segment_buckets(512, 8192, 16384),
            (std::vector<SegmentBucket>{
                {0, 128, 512}, {128, 512, 127}, {512, 2048, 31}, {2048, 8192, 7}}));
  for (const int64_t tokens : {1024, 16384, 524288})
    for (const int64_t segments : {2, 64, 1000})
      for (const int64_t longest : {int64_t{300}, tokens / 3, tokens}) {
        int64_t above = 0;
        for (const SegmentBucket& bucket : segment_buckets(segments, longest, tokens)) {
          EXPECT_EQ(bucket.above, above);
          above = bucket.longest;
          // As many as fit in the row, one more does not.
          EXPECT_TRUE(bucket.segments == segments ||
                      (bucket.segments + 1) * (bucket.above + 1) > tokens);
          if (segments * kFirstBucketTokens <= kMaxIdle * tokens) {
            EXPECT_FALSE(is_mostly_idle(bucket, tokens)) << segments << " " << longest;
          }
        }
        EXPECT_EQ(above, longest);
      }
}

TEST(CudnnChoice, calls_the_library_for_each_group_of_documents) {
  Job job;
  job.attention.segment_tokens = 200;
  job.segments = 15;
  const Program program = program_of(job);
  const program::OperationView view{program, program.operations[0]};
  EXPECT_EQ(buckets_of(program.operations[0].attributes.get<Attention>(), view).size(), 2U);
  program::Operation decided = program.operations[0];
  decided.attributes = decide(view, job.card);
  EXPECT_TRUE(is_by_cudnn({program, decided}));
  EXPECT_EQ(launches({program, decided}, job.card), 6);
}

// Every reason that the log gives is a different one.
TEST(CudnnChoice, says_why_not) {
  Job job;
  const auto why = [](const Job& asked) {
    const Program program = program_of(asked);
    return why_not_cudnn(program.operations[0].attributes.get<Attention>(),
                         {program, program.operations[0]}, asked.card);
  };
  EXPECT_EQ(why(job), "");
  job.card = card_of(*find_hardware("rtx-4090"));
  EXPECT_NE(why(job).find("this is 8.9"), std::string::npos) << why(job);
  job = {};
  job.attention.head_dim = 264;
  EXPECT_EQ(why(job), "heads have 264 columns");
}

TEST(CudnnChoice, leaves_the_rest_to_own_kernels) {
  const std::pair<const char*, std::function<void(Job&)>> changes[]{
      {"no cuDNN", [](Job& job) { job.card.cudnn = false; }},
      {"an older card", [](Job& job) { job.card = card_of(*find_hardware("a100")); }},
      {"f32", [](Job& job) { job.dtype = DType::f32; }},
      {"a crooked head", [](Job& job) { job.attention.head_dim = 76; }},
      {"a wide head", [](Job& job) { job.attention.head_dim = 264; }},
      {"slopes", [](Job& job) { job.attention.alibi_scale = 1; }},
      {"segments of any length", [](Job& job) { job.attention.segment_tokens = 0; }},
      {"sinks", [](Job& job) { job.attention.sinks = true; }},
      {"a bias by relative position",
       [](Job& job) {
         job.attention.relative_bias = true;
         job.attention.max_distance = 128;
       }},
      {"a cache", [](Job& job) { job.own_key_bounds = true; }},
      {"far more room than segments", [](Job& job) { job.segments = 17; }}};
  for (const auto& [name, change] : changes) {
    Job job;
    change(job);
    EXPECT_EQ(choice_of(job), (Choice{false, false})) << name;
  }
}

TEST(CudnnChoice, is_written_into_the_operation) {
  Job job;
  job.attention.deterministic = true;
  const Program program = program_of(job);
  const auto is_by_library = [&](size_t operation) {
    program::Operation decided = program.operations[operation];
    decided.attributes = decide({program, decided}, job.card);
    return is_by_cudnn({program, decided});
  };
  EXPECT_TRUE(is_by_library(0));
  EXPECT_FALSE(is_by_library(1));
}

// A library's scratch is a bound; own kernels need what they say.
TEST(CudnnChoice, says_what_workspaces_rest_on) {
  for (const bool deterministic : {true, false}) {
    Job job;
    job.attention.deterministic = deterministic;
    const Program program = program_of(job);
    for (size_t i = 0; i < 2; ++i) {
      program::Operation decided = program.operations[i];
      decided.attributes = decide({program, decided}, job.card);
      using program::WorkspaceBasis;
      const bool is_by_library = i == 0 || !deterministic;
      EXPECT_EQ(workspace({program, decided}, job.card).basis,
                is_by_library ? WorkspaceBasis::bound : WorkspaceBasis::computed);
    }
  }
}

TEST(CudnnChoice, has_its_scratch_planned) {
  const Job job;
  Program program = program_of(job);
  program.operations[1].attributes = decide({program, program.operations[1]}, job.card);
  const program::OperationView gradient{program, program.operations[1]};
  const auto& grad = gradient.operation.attributes.get<AttentionGrad>();
  const SegmentScratch scratch = segment_scratch(grad, gradient);
  EXPECT_EQ(workspace_bytes(gradient, job.card), scratch.bytes());
  // Three f32 sums the size of q, since heads share keys.
  EXPECT_GT(scratch.library_bytes, 3 * kTokens * 4 * 64 * 4);
  EXPECT_GE(scratch.begins - scratch.lengths, kSegments * 4);
  EXPECT_GE(scratch.lse - scratch.begins, 9 * (kSegments + 1) * 8);
  EXPECT_GE(scratch.library - scratch.lse, kTokens * 4 * 4);
}

// Of a fused projection: copies are decided, counted and priced.
TEST(CudnnChoice, copies_what_has_gaps) {
  const Job job;
  Program program = program_of(job);
  program::Operation& gradient = program.operations[1];
  const auto decide_gradient = [&] {
    gradient.attributes = decide({program, gradient}, job.card);
    gradient.launches = launches({program, gradient}, job.card);
    return program::cost({program, gradient}, program::BatchBounds());
  };
  const program::Cost plain = decide_gradient();
  EXPECT_EQ(plain.launches, 4);
  EXPECT_EQ(plain.serial_bytes, 0);
  EXPECT_FALSE(program::copies_operands(gradient.attributes.get<AttentionGrad>()));

  const auto widen = [&](const program::Operand<AttentionGrad>& operand) {
    program::Tensor& tensor = program.tensors[static_cast<size_t>(id_of(gradient, operand))];
    tensor.view = {.base = 0, .strides = {tensor.shape[1] + 64, 1}};
    return static_cast<double>(tensor.bytes());
  };
  double bytes = widen(AttentionGrad::kK);
  EXPECT_EQ(decide_gradient().serial_bytes, 2 * bytes);
  EXPECT_EQ(gradient.launches, 5);
  const auto& grad = gradient.attributes.get<AttentionGrad>();
  EXPECT_TRUE(grad.dense == (program::DenseAttention{.k = true}));

  // Gradients are copied all where one has gaps.
  bytes += widen(AttentionGrad::kDV);
  for (const auto& operand : {AttentionGrad::kDQ, AttentionGrad::kDK})
    bytes +=
        static_cast<double>(program.tensors[static_cast<size_t>(id_of(gradient, operand))].bytes());
  const program::Cost copied = decide_gradient();
  EXPECT_EQ(copied.serial_bytes, 2 * bytes);
  EXPECT_EQ(copied.bytes - plain.bytes, 2 * bytes);
  EXPECT_EQ(copied.launches, 8);
  EXPECT_TRUE(gradient.attributes.get<AttentionGrad>().dense.gradients);
}

}  // namespace
}  // namespace snug::backends::cuda
