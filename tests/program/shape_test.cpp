// What each kind accepts and refuses, on one table of tensors.
#include <gtest/gtest.h>

#include "program/kinds/attention/attention.h"
#include "program/kinds/kind.h"
#include "program/kinds/product/matmul.h"
#include "program/text/text.h"
#include "shape_tensors.h"

namespace snug::program {
namespace {

struct Case {
  const char* operation;
  const char* error;  // how it begins; empty: accepted
};

class ShapeRules : public ::testing::TestWithParam<Case> {};

TEST_P(ShapeRules, AcceptsOrSaysWhy) {
  const Program program = parse_text(std::string(kTensors) + GetParam().operation);
  const std::string error = shape_error({program, program.operations[0]});
  if (std::string_view(GetParam().error).empty())
    EXPECT_EQ(error, "") << GetParam().operation;
  else
    EXPECT_EQ(error.rfind(GetParam().error, 0), 0U) << GetParam().operation << "\n" << error;
}

INSTANTIATE_TEST_SUITE_P(
    Matmul, ShapeRules,
    ::testing::Values(
        Case{"wide = matmul(x, wt)", ""}, Case{"wide = matmul(x, w) {transpose_b}", ""},
        Case{"wide = matmul(short, wt) {transpose_a}", ""},
        Case{"wide = matmul(short, w) {transpose_a, transpose_b}", ""},
        Case{"logits = matmul(x, head) {transpose_b}", ""}, Case{"x = matmul(logits, head)", ""},
        Case{"square32 = matmul(x, x32) {transpose_a}", ""},
        Case{"y = matmul(x, square, x32) {addend}", ""},
        Case{"matmul(x, y) updates (square) {transpose_a, accumulate}", ""},
        Case{"matmul(x, y, random) updates (square) {transpose_a, accumulate, stochastic}", ""},
        Case{"wide = matmul(x, w)", "b 'w' has shape (6, 4), expected (4, 4)"},
        Case{"x = matmul(x, wt)", "c 'x' has shape (8, 4), expected (8, 6)"},
        Case{"wide = matmul(flat, wt)", "a 'flat' has shape (4), expected 2 dimensions"},
        Case{"wide = matmul(x)", "has 1 read, expected 2 (a, b)"},
        Case{"matmul(x, wt)", "has 0 writes, expected 1"},
        Case{"wide = matmul(x, wt) updates (x)", "has 1 update, expected 0"},
        Case{"y = matmul(x, square) {addend}", "has 2 reads, expected 3"},
        Case{"y = matmul(x, square, wide) {addend}", "addend 'wide' has shape (8, 6)"},
        Case{"matmul(x, square, x) updates (y) {addend, accumulate}", "has both addend and"},
        Case{"y = matmul(x, square, random) {stochastic}", "is stochastic without accumulate"},
        Case{"wide = matmul(x, w, x, w) {transpose_b, augmented, low_transpose_b}", ""},
        Case{"wide = matmul(x, wt, wide, x, wt) {addend, augmented, low_alpha 2}", ""},
        Case{"wide = matmul(x, wt) {augmented}", "has 2 reads, expected 4"},
        Case{"wide = matmul(x, wt, short, wt) {augmented}", "low_a 'short' has shape"},
        Case{"wide = matmul(x, wt, x, w) {augmented}",
             "low_b 'w' has shape (6, 4), expected (4, 6)"},
        Case{"matmul(x, y, random) updates (square32) {transpose_a, accumulate, stochastic}",
             "c 'square32' is f32, expected bf16"},
        Case{"matmul(x, y, ids) updates (square) {transpose_a, accumulate, stochastic}",
             "random 'ids' has shape (8), expected (2)"},
        Case{"y = matmul(x, square) {alpha inf}", "has an alpha that is not finite"},
        Case{"y = matmul(x16, square)", "b 'square' is bf16 next to a 'x16' of f16"},
        Case{"y = matmul(xi, square)", "a 'xi' is i32"},
        Case{"y = matmul(x64, square)", "b 'square' is bf16 next to a 'x64' of f64"}));

INSTANTIATE_TEST_SUITE_P(
    Elementwise, ShapeRules,
    ::testing::Values(
        Case{"y = add(x, x)", ""}, Case{"y32 = add(x, x32)", ""}, Case{"y64 = add(x64, x64)", ""},
        Case{"y = add(x, wide)", "b 'wide' has shape (8, 6), expected (8, 4)"},
        Case{"wide = add(x, x)", "c 'wide'"}, Case{"xi = add(xi, xi)", "a 'xi' is i32"},
        Case{"accumulate(x) updates (y32)", ""},
        Case{"accumulate(x, random) updates (y) {stochastic}", ""},
        Case{"accumulate(x, random) updates (y)", "has 2 reads, expected 1"},
        Case{"accumulate(x, random) updates (y32) {stochastic}", "y 'y32' is f32, expected bf16"},
        Case{"accumulate(x) updates (wide)", "y 'wide' has shape (8, 6)"},
        Case{"y = add_bias(x, flat32)", ""},
        Case{"y = add_bias(x, flat6)", "bias 'flat6' has shape (6), expected (4)"},
        Case{"flat32 = sum_rows(x)", ""}, Case{"sum_rows(x) updates (flat32) {accumulate}", ""},
        Case{"flat6 = sum_rows(x)", "y 'flat6' has shape (6), expected (4)"},
        Case{"flat32 = sum_rows(x) {accumulate}", "has 1 write, expected 0"},
        Case{"y = dropout(x, random) {probability 0.5, row_length 4}", ""},
        Case{"y32 = dropout(x, random)", "y 'y32' is f32, expected bf16"},
        Case{"y = dropout(x, random) {probability 1}", "has a probability outside [0, 1)"},
        Case{"y = dropout(x, random) {probability nan}", "has a probability outside [0, 1)"},
        Case{"y = dropout(x, random) {row_length 0}", "has a row_length that is not positive"},
        Case{"y = dropout(x, ids)", "random 'ids' has shape (8), expected (2)"},
        Case{"y = add_noise(x, bounds, random) {alpha 5, row_length 4}", ""},
        Case{"y32 = add_noise(x, bounds, random)", "y 'y32' is f32, expected bf16"},
        Case{"y = add_noise(x, bounds, random) {alpha -1}", "has an alpha that is negative"},
        Case{"y = add_noise(x, bounds, random) {row_length 0}", "has a row_length"},
        Case{"y = add_noise(x, ids, random)", "bounds 'ids' has shape (8), expected 2"},
        Case{"y32 = cast(x16)", ""}, Case{"y64 = cast(x)", ""},
        Case{"y = cast(xi)", "casts an element type that is not floating point"},
        Case{"wide = cast(x)", "y 'wide' has shape (8, 6)"}));

INSTANTIATE_TEST_SUITE_P(
    Layers, ShapeRules,
    ::testing::Values(
        Case{"y = embedding(head, ids)", ""}, Case{"y32 = embedding(head, ids)", ""},
        Case{"y = embedding(head, ids64)", "ids 'ids64' is i64, expected i32"},
        Case{"y = embedding(head, ids4)", "y 'y' has shape (8, 4), expected (4, 4)"},
        Case{"y = embedding(head, ids) {transposed}", "y 'y' has shape (8, 4), expected (8, 16)"},
        Case{"square32 = embedding_grad(x, ids) {transposed}", ""},
        Case{"column32 = embedding(flat, ids) {transposed}", ""},
        Case{"y = embedding(flat, ids) {transposed}", "y 'y' has shape (8, 4), expected (8, 1)"},
        Case{"column32 = embedding(flat, ids)",
             "table 'flat' has shape (4), expected 2 dimensions"},
        Case{"flat32 = embedding_grad(column32, ids) {transposed}", ""},
        Case{"flat32 = embedding_grad(x, ids) {transposed}",
             "has a table whose rows are not as wide as dy"},
        Case{"w32 = embedding_grad(x, ids) {transposed}",
             "has a table whose rows are not as wide as dy"},
        Case{"head32 = embedding_grad(x, ids)", ""},
        Case{"embedding_grad(x, ids) updates (head32) {accumulate}", ""},
        Case{"head32 = embedding_grad(x, ids4)", "ids 'ids4' has shape (4), expected (8)"},
        Case{"w32 = embedding_grad(wide, ids)", "has a table whose rows are not as wide as dy"},
        Case{"y = rms_norm(x, flat32)", ""},
        Case{"y = rms_norm(x, flat6)", "w 'flat6' has shape (6), expected (4)"},
        Case{"y = rms_norm(x, flat) {epsilon -1}", "has a negative epsilon"},
        Case{"y = rms_norm(x, flat) {offset 1}", ""}, Case{"y = layer_norm(x, flat32)", ""},
        Case{"y = layer_norm(x, flat, flat32) {bias}", ""},
        Case{"y = layer_norm(x, flat) {bias}", "has 2 reads, expected 3"},
        Case{"y = layer_norm(x, flat, flat6) {bias}", "bias 'flat6' has shape (6), expected (4)"},
        Case{"y = layer_norm(x, flat) {epsilon -1}", "has a negative epsilon"},
        Case{"y, flat32 = layer_norm_grad(x, x, flat, x32) {weight_gradient, addend}", ""},
        Case{"y = layer_norm_grad(x, x, flat) {accumulate}", "accumulates a weight"},
        Case{"y = gelu_mul(x, wide) {tanh}", "up 'wide' has shape (8, 6), expected (8, 4)"},
        Case{"x, y = gelu_mul_grad(x, x, y)", ""}, Case{"y = scale(x) {factor 2}", ""},
        Case{"y = relu(wide)", "y 'y' has shape (8, 4), expected (8, 6)"},
        Case{"y = softcap(x) {cap 30}", ""}, Case{"y = scale_columns(x, flat)", ""},
        Case{"y = scale_columns(x, flat32, flat32) {divided}", ""},
        Case{"y = scale_columns(x, flat6)", "gain 'flat6' has shape (6), expected (4)"},
        Case{"y = scale_columns(x, flat, flat) {divided}", "divisor 'flat' is bf16, expected f32"},
        Case{"wide2 = scale_columns(wide, sinks)", ""}, Case{"y = scale_columns(x, one)", ""},
        Case{"y = scale_columns(x, one, two) {divided}", ""},
        Case{"sinks = column_gain_grad(wide, wide2)", ""},
        Case{"flat32 = column_gain_grad(x, y)", ""},
        Case{"column_gain_grad(x, y, flat32) updates (flat) {divided, accumulate}", ""},
        Case{"flat6 = column_gain_grad(x, y)", "dgain 'flat6' has shape (6), expected (4)"},
        Case{"flat32 = row_norms(square)", ""},
        Case{"flat32 = row_norms(short, wt, square) {low_rank}", "a 'wt' has shape (4, 6)"},
        Case{"flat32 = row_norms(wt, w, square) {low_rank}",
             "a 'w' has shape (6, 4), expected (6, 6)"},
        Case{"flat32 = row_norms(w, wt, square) {transposed, low_rank}", ""},
        Case{"flat = row_norms(square)", "norms 'flat' is bf16, expected f32"},
        Case{"y = softcap(x) {cap 0}", "has a cap that is not positive"},
        Case{"y = softcap_grad(x, wide) {cap 2}", "dy 'x' has shape (8, 4), expected (8, 6)"},
        Case{"y = rms_norm_grad(x, x, flat)", ""},
        Case{"y, flat32 = rms_norm_grad(x, x, flat, x32) {weight_gradient, addend}", ""},
        Case{"y = rms_norm_grad(x, x, flat) updates (flat32) {weight_gradient, accumulate}", ""},
        Case{"y = rms_norm_grad(x, x, flat) {weight_gradient}", "has 1 write, expected 2"},
        Case{"y = rms_norm_grad(x, x, flat) {accumulate}", "accumulates a weight"},
        Case{"y, flat6 = rms_norm_grad(x, x, flat) {weight_gradient}", "dw 'flat6' has shape (6)"},
        Case{"y = rms_norm_grad(wide, x, flat)", "dy 'wide' has shape (8, 6), expected (8, 4)"},
        Case{"table = rotary_table(ids, frequency)", ""},
        Case{"table = rotary_table(ids4, frequency)", "table 'table' has shape (8, 2)"},
        Case{"table16 = rotary_table(ids, frequency)", "table 'table16' is bf16, expected f32"},
        Case{"table = rotary_table(ids, frequency) {growth 0.1, period 0}",
             "has a period that is not positive"},
        Case{"y = rope(x, table) {head_dim 2}", ""},
        Case{"y = rope(x, table) {head_dim 4, rotary_dim 2, interleaved}", ""},
        Case{"y = rope(x, table) {head_dim 4, rotary_dim 3}", "has a rotary_dim that is odd"},
        Case{"y = rope(x, table) {head_dim 4, rotary_dim 6}",
             "has a rotary_dim that is odd or not"},
        Case{"y = rope(x, table)", "has a head_dim that is not positive and even"},
        Case{"y = rope(x, table) {head_dim 4}", "table 'table' has shape (8, 2), expected (8, 4)"},
        Case{"wide = rope(wide, table) {head_dim 4}", "has an x whose width is no multiple"},
        Case{"y = rope(x, table16) {head_dim 2}", "table 'table16' is bf16"},
        Case{"y = silu_mul(x, x)", ""},
        Case{"y = silu_mul(x, wide)", "up 'wide' has shape (8, 6), expected (8, 4)"},
        Case{"x, y = silu_mul_grad(x, x, y)", ""},
        Case{"wide, y = silu_mul_grad(x, x, y)", "dgate 'wide' has shape (8, 6)"},
        Case{"k = clamped_swiglu(x)", ""},
        Case{"k = clamped_swiglu(wide)", "gate_up 'wide' has shape (8, 6), expected (8, 4)"},
        Case{"k = clamped_swiglu(x) {limit 0}", "has a limit that is not above 0"},
        Case{"y = clamped_swiglu_grad(k, x)", ""},
        Case{"wide = clamped_swiglu_grad(k, x)", "dgate_up 'wide' has shape (8, 6)"},
        Case{"y = add_expert_bias(x, square, bounds4)", ""},
        Case{"y = add_expert_bias(x, square, bounds)", "bounds 'bounds' has shape (3, 2)"},
        Case{"y = add_expert_bias(x, w, bounds4)", "bounds 'bounds4' has shape (4, 2)"},
        Case{"y = add_expert_bias(x, square, bounds4, m, bounds4) {weighted}",
             "weights 'm' has shape (4, 4), expected (4, 2)"},
        Case{"square = expert_bias_grad(x, bounds4)", ""},
        Case{"wide = expert_bias_grad(x, bounds4)", "dbias 'wide' has shape (8, 6)"}));

#define SNUG_HEADS "{heads 2, kv_heads 1, head_dim 2}"
#define SNUG_PAGED "{heads 2, kv_heads 1, head_dim 2, paged, page_tokens"
#define SNUG_QUANTIZED "{heads 2, kv_heads 1, head_dim 2, quantized"
#define SNUG_BIASED "{heads 2, kv_heads 1, head_dim 2, relative_bias, max_distance"
INSTANTIATE_TEST_SUITE_P(
    Attention, ShapeRules,
    ::testing::Values(
        Case{"y, lse = attention(x, k, v, bounds, bounds) " SNUG_HEADS, ""},
        Case{"y, lse64 = attention(x, k, v, bounds, bounds) " SNUG_HEADS, ""},
        Case{"y, lse16 = attention(x, k, v, bounds, bounds) " SNUG_HEADS, "lse 'lse16' is bf16"},
        Case{"y = attention(x, k, v, bounds, bounds) " SNUG_HEADS, "has 1 write, expected 2"},
        Case{"y, lse = attention(x, k, v, bounds, bounds)", "needs positive heads"},
        Case{
            "y, lse = attention(x, k, v, bounds, bounds) {heads 2, kv_heads 1, head_dim 2, softcap "
            "50, alibi_scale 1}",
            ""},
        Case{
            "y, lse = attention(x, k, v, bounds, bounds) {heads 2, kv_heads 1, head_dim 2, softcap "
            "-1}",
            "has a softcap that is negative"},
        Case{"y, lse = attention(x, k, v, bounds, bounds) {heads 2, kv_heads 1, head_dim 2, "
             "alibi_scale 1, causal false}",
             "has an alibi_scale without being causal"},
        Case{"y, lse = attention(x, k, v, bounds, bounds) {heads 3, kv_heads 2, head_dim 2}",
             "has heads that are no multiple of kv_heads"},
        Case{"y, lse = attention(x, x, v, bounds, bounds) " SNUG_HEADS,
             "k 'x' has shape (8, 4), expected (8, 2)"},
        Case{"y, lse = attention(x, k32, v, bounds, bounds) " SNUG_HEADS,
             "k 'k32' is f32, expected bf16"},
        Case{"y, lse = attention(x, k, v, bounds, bounds4) " SNUG_HEADS,
             "k_bounds 'bounds4' has shape (4, 2), expected (3, 2)"},
        Case{"y, lse = attention(x, k, v, bounds3, bounds3) " SNUG_HEADS, "q_bounds 'bounds3'"},
        Case{"y, lse = attention(x, k, v, bounds, bounds, sinks) {heads 2, kv_heads 1, head_dim 2, "
             "sinks}",
             ""},
        Case{"y, lse = attention(x, k, v, bounds, bounds, flat) {heads 2, kv_heads 1, head_dim 2, "
             "sinks}",
             "sinks 'flat' has shape (4), expected (2)"},
        Case{"y, lse = attention(x, k, v, bounds, bounds, bounds) " SNUG_PAGED " 4}", ""},
        Case{"y, lse = attention(x, k, v, bounds, bounds, sinks, k, bounds3) {heads 2, kv_heads 1, "
             "head_dim 2, sinks, relative_bias, max_distance 20, paged, page_tokens 4}",
             ""},
        Case{"y, lse = attention(x, k, v, bounds, bounds) " SNUG_PAGED " 4}",
             "has 5 reads, expected 6"},
        Case{"y, lse = attention(x, k, v, bounds, bounds, bounds4) " SNUG_PAGED " 4}",
             "pages 'bounds4' has shape (4, 2), expected (3, 2)"},
        Case{"y, lse = attention(x, k, v, bounds, bounds, bounds) " SNUG_PAGED " 3}",
             "has pools whose rows are no whole pages"},
        Case{"y, lse = attention(x, k, v, bounds, bounds, bounds) " SNUG_PAGED " 16}",
             "has pools whose rows are no whole pages"},
        Case{"y, lse = attention(x, k, v, bounds, bounds, bounds) " SNUG_PAGED " 0}",
             "needs page_tokens above 0"},
        Case{"y, lse = attention(x, k, v, bounds, bounds) {heads 2, kv_heads 1, head_dim 2, "
             "page_tokens 4}",
             "needs page_tokens above 0"},
        Case{"y, lse = attention(x, k, v, bounds, bounds, bounds) " SNUG_PAGED
             " 4, segment_tokens 8}",
             "is paged and has segment_tokens"},
        Case{"y, lse = attention(x, k8, v8, bounds, bounds, k_scales, v_scales) " SNUG_QUANTIZED
             "}",
             ""},
        Case{"y, lse = attention(x, k8, v8, bounds, bounds, bounds, k_scales, "
             "v_scales) " SNUG_QUANTIZED ", paged, page_tokens 4}",
             ""},
        Case{"y, lse = attention(x, k8, v8, bounds, bounds) " SNUG_QUANTIZED "}",
             "has 5 reads, expected 7"},
        Case{"y, lse = attention(x, k, v8, bounds, bounds, k_scales, v_scales) " SNUG_QUANTIZED "}",
             "k 'k' is bf16, expected u8"},
        Case{"y, lse = attention(x, k8, v8, bounds, bounds) " SNUG_HEADS, "k 'k8' is u8"},
        Case{"y, lse = attention(x, k8, v8, bounds, bounds, k_scales, lse) " SNUG_QUANTIZED "}",
             "v_scales 'lse' has shape (2, 8), expected (1, 8)"},
        Case{"sinks = attention_sink_grad(x, y, lse, sinks)", ""},
        Case{"sinks = attention_sink_grad(x, y, losses, sinks)",
             "lse 'losses' has shape (8), expected (2, 8)"},
        Case{"y, dk, dv = attention_grad(x, x, k, v, y, lse, bounds, bounds) " SNUG_HEADS, ""},
        Case{"y, lse = attention(x, k, v, bounds, bounds, k) " SNUG_BIASED " 20}", ""},
        Case{"y, lse = attention(x, k, v, bounds, bounds, x) " SNUG_BIASED " 20}",
             "bias 'x' has shape (8, 4), expected (8, 2)"},
        Case{"y, lse = attention(x, k, v, bounds, bounds, k) " SNUG_BIASED " 4}",
             "has a max_distance within the buckets of one distance each"},
        Case{"y, dk, dv, k32 = attention_grad(x, x, k, v, y, lse, bounds, bounds, v) " SNUG_BIASED
             " 20, bias_gradient}",
             ""},
        Case{"y32, dk, dv = attention_grad(x, x, k, v, y, lse, bounds, bounds) " SNUG_HEADS, ""},
        Case{"y, dk, x = attention_grad(x, x, k, v, y, lse, bounds, bounds) " SNUG_HEADS,
             "dv 'x' has shape (8, 4), expected (8, 2)"},
        Case{"y, dk, dv = attention_grad(x, x, k, v, y, losses, bounds, bounds) " SNUG_HEADS,
             "lse 'losses' has shape (8), expected (2, 8)"},
        Case{"cache_write(x, ids) updates (cache)", ""},
        Case{"cache_write(x, ids) updates (cache8, cache_scales) {quantized}", ""},
        Case{"cache_write(x, ids) updates (cache8) {quantized}", "has 1 update, expected 2"},
        Case{"cache_write(x, ids) updates (cache, cache_scales) {quantized}",
             "cache 'cache' is bf16, expected u8"},
        Case{"cache_write(x, ids) updates (cache8)", "cache 'cache8' is u8, expected f32"},
        Case{"cache_write(x, ids) updates (cache8, k_scales) {quantized}",
             "scales 'k_scales' has shape (1, 8), expected (1, 32)"},
        Case{"cache_write(x, ids) updates (cache8, three_scales) {quantized}",
             "has rows that are no whole heads"},
        Case{"cache_write(x, ids) updates (cache32)", "cache 'cache32' is f32, expected bf16"},
        Case{"cache_write(wide, ids) updates (cache)", "cache 'cache' has shape (32, 4), expected"},
        Case{"cache_write(x, ids4) updates (cache)", "slots 'ids4' has shape (4), expected (8)"}));

INSTANTIATE_TEST_SUITE_P(
    Loss, ShapeRules,
    ::testing::Values(
        Case{"losses, one = cross_entropy(logits, ids, two)", ""},
        Case{"losses, one = cross_entropy(logits16, ids, two)", ""},
        Case{"losses, one = cross_entropy(logits, ids4, two)", "targets 'ids4' has shape (4)"},
        Case{"losses, losses = cross_entropy(logits, ids, two)", "loss 'losses' has shape (8)"},
        Case{"dlogits = cross_entropy_grad(logits, ids, two)", ""},
        Case{"logits16 = cross_entropy_grad(logits, ids, two)", ""},
        Case{"x = cross_entropy_grad(logits, ids, two)", "dlogits 'x' has shape (8, 4)"},
        Case{"losses, one = linear_cross_entropy(x, head, ids, two) {algorithm chunk_rows 4}", ""},
        Case{"losses, one = linear_cross_entropy(x, head, ids, two) {scale 0.5, softcap 30}", ""},
        Case{"losses, one = linear_cross_entropy(x, head, ids, two) {softcap -1}",
             "has a softcap that is negative"},
        Case{"losses, one = linear_cross_entropy(x, head, ids, two) {algorithm chunk_rows -1}",
             "has a negative chunk_rows"},
        Case{"losses, one, losses = linear_cross_entropy(x, head, ids, two) {hits}",
             "hits 'losses' has shape (8), expected (8, 1)"},
        Case{"losses, one = linear_cross_entropy(wide, head, ids, two)",
             "weight 'head' has shape (16, 4), expected (16, 6)"},
        Case{"losses, one = linear_cross_entropy(x, head, ids, losses)", ""},
        Case{"losses, one = linear_cross_entropy(x, head, ids, flat32)",
             "inverse_tokens 'flat32' has shape (4), expected (1)"},
        Case{"losses, one = linear_cross_entropy(x, w, ids, two, flat6) {bias, softcap 30}", ""},
        Case{"losses, one = linear_cross_entropy(x, w, ids, two, flat) {bias}",
             "bias 'flat' has shape (4), expected (6)"},
        Case{"losses, one = linear_cross_entropy(x, w, ids, two, flat6) {bias, scale 0.5}",
             "has a bias and a scale"},
        Case{"losses, one, y, flat6 = linear_cross_entropy_train(x, w, ids, two, flat6) "
             "{bias, bias_gradient}",
             ""},
        Case{"losses, one, y, flat6 = linear_cross_entropy_train(x, w, ids, two) {bias_gradient}",
             "makes the gradient of a bias that it has not"},
        Case{"losses, one = linear_cross_entropy(x, w, ids, two, flat6) {gain}", ""},
        Case{"losses, one = linear_cross_entropy(x, w, ids, two, flat) {gain}",
             "gain 'flat' has shape (4), expected (6)"},
        Case{"losses, one = linear_cross_entropy(x, w, ids, two, flat6) {gain, scale 0.5}",
             "has a gain and a scale"},
        Case{"losses, one, y = linear_cross_entropy_train(x, head, ids, two)", ""},
        Case{"losses, one, y, head32 = linear_cross_entropy_train(x, head, ids, two) "
             "{weight_gradient}",
             ""},
        Case{"losses, one, y = linear_cross_entropy_train(x, head, ids, two) updates (head32) "
             "{weight_gradient, accumulate}",
             ""},
        Case{"losses, one, y = linear_cross_entropy_train(x, head, ids, two) {weight_gradient}",
             "has 3 writes, expected 4"},
        Case{"losses, one, y = linear_cross_entropy_train(x, head, ids, two) {accumulate}",
             "accumulates a weight gradient that it does not make"},
        Case{"losses, one, y, w32 = linear_cross_entropy_train(x, head, ids, two) "
             "{weight_gradient}",
             "dweight 'w32' has shape (6, 4), expected (16, 4)"}));

INSTANTIATE_TEST_SUITE_P(
    Update, ShapeRules,
    ::testing::Values(
        Case{"one = global_norm(x, flat32, w)", ""},
        Case{"one = global_norm()", "has 0 reads, expected at least 1 (gradients)"},
        Case{"one = global_norm(x, ids)", "gradients 'ids' is i32"},
        Case{"flat32 = global_norm(x)", "norm 'flat32' has shape (4), expected (1)"},
        Case{"two = clip_factor(one)", ""},
        Case{"two = clip_factor(one) {max_norm -1}", "has a negative max_norm"},
        Case{"adamw(square32, one, two, onei) updates (square, m, v32, master) {has_master}", ""},
        Case{"adamw(square32, one, two, onei) updates (master, m, v32)", ""},
        Case{"adamw(square, one, two, onei) updates (square, m16, v16) {stochastic}", ""},
        Case{"adamw(square32, one, two, onei) updates (square, m, v32)",
             "weight 'square' is bf16, expected f32"},
        Case{"adamw(square32, one, two, onei) updates (square, m16, v32, master) {has_master}",
             "first_moment 'm16' is bf16"},
        Case{"adamw(square32, one, two, onei) updates (square, m16, v16, master) "
             "{stochastic, has_master}",
             "is stochastic and has a master"},
        Case{"adamw(square, one, two, onei) updates (square, m, v16) {stochastic}",
             "first_moment 'm' is f32, expected bf16"},
        Case{"adamw(square, one, two, onei) updates (master, m16, v16) {stochastic}",
             "weight 'master' is f32, expected bf16"},
        Case{"adamw(square, one, two, two) updates (master, m, v32)", "step 'two' is f32"},
        Case{"adamw(w32, one, two, onei) updates (master, m, v32)",
             "gradient 'w32' has shape (6, 4), expected (4, 4)"},
        Case{"adamw(square, one, two, onei) updates (master, m, v32) {beta2 1}",
             "has a beta2 outside [0, 1)"},
        Case{"adamw(square, one, two, onei) updates (master, m)", "has 2 updates, expected 3"}));

INSTANTIATE_TEST_SUITE_P(
    OtherOptimizers, ShapeRules,
    ::testing::Values(
        Case{"lion(square32, one, two) updates (square, m, master) {has_master}", ""},
        Case{"lion(square, one, two) updates (master, m)", ""},
        Case{"lion(square32, one, two) updates (square, m)", "weight 'square' is bf16"},
        Case{"lion(square32, one, two) updates (master, m16)", "momentum 'm16' is bf16"},
        Case{"lion(w32, one, two) updates (master, m)", "gradient 'w32' has shape (6, 4)"},
        Case{"lion(square32, one, two) updates (master, m) {beta1 1}", "has a beta1 outside"},
        Case{"lion(square32, one, two, onei) updates (master, m)", "has 4 reads, expected 3"},
        Case{"muon(square32, one, two) updates (square, m, master) {has_master}", ""},
        Case{"muon(square, one, two) updates (master, m)", ""},
        Case{"muon(square32, one, two) updates (square, m)", "weight 'square' is bf16"},
        Case{"muon(flat, one, two) updates (flat32, row32)", "has a weight that is no matrix"},
        Case{"muon(square, one, two) updates (master, m) {steps 0}", "has no steps"},
        Case{"muon(square, one, two) updates (master, m) {c1 0}", "has a c1 that is 0"},
        Case{"adafactor(w32, one, two, onei) updates (w, flat6f, flat32, w32m) {factored, "
             "has_master}",
             ""},
        Case{"adafactor(flat, one, two, onei) updates (flat32, row32)", ""},
        Case{"adafactor(square32, one, two, onei) updates (master, flat32, row32) {factored}", ""},
        Case{"adafactor(square32, one, two, onei) updates (master, m)", ""},
        Case{"adafactor(flat, one, two, onei) updates (flat32, row32, row32) {factored}",
             "weight 'flat32' has shape (4), expected 2 dimensions"},
        Case{"adafactor(w32, one, two, onei) updates (w32m, flat32, flat6f) {factored}",
             "row_moment 'flat32' has shape (4), expected (6)"},
        Case{"adafactor(square32, one, two, onei) updates (square, flat32, row32) {factored}",
             "weight 'square' is bf16"},
        Case{"adafactor(square32, one, two, onei) updates (master, m) {decay_rate 0}",
             "has a decay_rate that is not below 0"},
        Case{"adafactor(square32, one, two, two) updates (master, m)", "step 'two' is f32"},
        Case{"adafactor(square32, one, two, onei) updates (master, m) {clip_threshold 0}",
             "has a clip_threshold that is not above 0"}));

}  // namespace
}  // namespace snug::program
