// What the kinds of a gated delta net accept and refuse.
#include <gtest/gtest.h>

#include "program/kinds/kind.h"
#include "program/text/text.h"

namespace snug::program {
namespace {

// 8 tokens; 2 key heads of 3 elements and 4 value heads of 2; 3 segments; filters of 4 tokens.
constexpr const char* kRecurrenceTensors = R"(program shapes
tensor q (8, 6) bf16
tensor k (8, 6) bf16
tensor v (8, 8) bf16
tensor o (8, 8) bf16
tensor short (4, 6) bf16
tensor filters (6, 1, 4) bf16
tensor long (6, 1, 9) bf16
tensor flat_filters (6, 4) bf16
tensor bounds (3, 2) i32
tensor triples (3, 3) i32
tensor a (8, 4) bf16
tensor b (8, 4) bf16
tensor heads (4) f32
tensor key_heads (2) f32
tensor g (8, 4) f32
tensor beta (8, 4) f32
tensor dq (8, 6) bf16
tensor dk (8, 6) bf16
tensor dv (8, 8) bf16
tensor rows (5, 18) bf16
tensor states (5, 24) f32
tensor one (1) f32
tensor number () f32
)";

struct RecurrenceCase {
  const char* operation;
  const char* error;  // how it begins; empty: accepted
};

#define SNUG_DELTA "{key_heads 2, value_heads 4}"
constexpr RecurrenceCase kRecurrenceCases[]{
    {"dq = causal_convolution(q, filters, bounds)", ""},
    {"dq = causal_convolution(q, flat_filters, bounds)",
     "w 'flat_filters' has shape (6, 4), expected 3 dimensions"},
    {"o = causal_convolution(v, filters, bounds)",
     "w 'filters' has shape (6, 1, 4), expected (8, 1, 4)"},
    {"dq = causal_convolution(q, long, bounds)",
     "has a filter of no tokens, or of more than eight"},
    {"dq = causal_convolution(q, filters, triples)", "bounds 'triples' has shape (3, 3)"},
    {"short = causal_convolution(q, filters, bounds)", "y 'short' has shape (4, 6)"},
    {"dq = causal_convolution_grad(k, q, filters, bounds)", ""},
    {"dq = causal_convolution_grad(k, q, filters, bounds) {weight_gradient}",
     "has 1 write, expected 2"},
    {"dq, long = causal_convolution_grad(k, q, filters, bounds) {weight_gradient}",
     "dw 'long' has shape (6, 1, 9), expected (6, 1, 4)"},
    {"g, beta = delta_gates(a, b, heads, heads)", ""},
    {"g, beta = delta_gates(a, b, key_heads, heads)", "a_log 'key_heads' has shape (2)"},
    {"g, a = delta_gates(a, b, heads, heads)", "beta 'a' is bf16, expected f32"},
    {"a, b = delta_gates_grad(g, beta, a, b, heads, heads)", ""},
    {"a, v = delta_gates_grad(g, beta, a, b, heads, heads)", "db 'v' has shape (8, 8)"},
    {"a, b, heads, key_heads = delta_gates_grad(g, beta, a, b, heads, heads) {weight_gradient}",
     "ddt_bias 'key_heads' has shape (2), expected (4)"},
    {"o = gated_delta_rule(q, k, v, g, beta, bounds) " SNUG_DELTA, ""},
    {"o = gated_delta_rule(q, k, v, g, beta, bounds)", "has value heads that are no multiple"},
    {"o = gated_delta_rule(q, k, v, g, beta, bounds) {key_heads 4, value_heads 4}",
     "has rows of q that are no whole heads"},
    {"o = gated_delta_rule(q, short, v, g, beta, bounds) " SNUG_DELTA,
     "k 'short' has shape (4, 6), expected (8, 6)"},
    {"o = gated_delta_rule(q, k, v, a, beta, bounds) " SNUG_DELTA, "g 'a' is bf16"},
    {"q = gated_delta_rule(q, k, v, g, beta, bounds) " SNUG_DELTA,
     "o 'q' has shape (8, 6), expected (8, 8)"},
    {"dq, dk, dv, g, beta = gated_delta_rule_grad(o, q, k, v, g, beta, bounds) " SNUG_DELTA, ""},
    {"dq, dk, dv, g, a = gated_delta_rule_grad(o, q, k, v, g, beta, bounds) " SNUG_DELTA,
     "dbeta 'a' is bf16"},
    {"dq, dk, dq, g, beta = gated_delta_rule_grad(o, q, k, v, g, beta, bounds) " SNUG_DELTA,
     "dv 'dq' has shape (8, 6), expected (8, 8)"},
    {"o = sigmoid_mul(v, o)", ""},
    {"dq = causal_convolution(q, filters, bounds, bounds) updates (rows) {cached}", ""},
    {"dq = causal_convolution(q, filters, bounds, bounds) updates (states) {cached}",
     "state 'states' has shape (5, 24), expected (5, 18)"},
    {"dq = causal_convolution(q, filters, bounds, triples) updates (rows) {cached}",
     "slots 'triples' has shape (3, 3), expected (3, 2)"},
    {"dq = causal_convolution(q, filters, bounds, bounds) {cached}", "has 0 updates, expected 1"},
    {"o = gated_delta_rule(q, k, v, g, beta, bounds, bounds) updates (states) "
     "{key_heads 2, value_heads 4, cached}",
     ""},
    {"o = gated_delta_rule(q, k, v, g, beta, bounds, bounds) updates (rows) "
     "{key_heads 2, value_heads 4, cached}",
     "state 'rows'"},
    {"o = sigmoid_mul(v, q)", "up 'q' has shape (8, 6), expected (8, 8)"},
    {"v, o = sigmoid_mul_grad(dv, v, o)", ""},
    {"o = multiply(v, o)", ""},
    {"o = multiply(v, q)", "up 'q' has shape (8, 6), expected (8, 8)"},
    {"dq = causal_convolution(q, filters, bounds) {plain}", ""},
    {"dv = xielu(v, one, one, number, number)", ""},
    {"dv = xielu(v, one, one, one, number)", "beta 'one' has shape (1), expected ()"},
    {"dv = xielu(v, heads, one, number, number)", "alpha_p 'heads' has shape (4), expected (1)"},
    {"dv = xielu_slope(q, one, number) {negative}", "slope 'dv' has shape (8, 8), expected (8, 6)"},
};

TEST(RecurrenceShapes, AcceptsOrSaysWhy) {
  for (const auto& [operation, expected] : kRecurrenceCases) {
    const Program program = parse_text(std::string(kRecurrenceTensors) + operation);
    const std::string error = shape_error({program, program.operations[0]});
    const bool is_accepted = std::string_view(expected).empty();
    EXPECT_EQ(is_accepted, error.empty()) << operation << "\n" << error;
    EXPECT_TRUE(error.starts_with(expected)) << operation << "\n" << error;
  }
}

// One head of 2 x 3 at 10 tokens: three products with the state, and of a chunk half of the scores
// and of the values.
TEST(RecurrenceShapes, CostsProductsWithTheStateAndWithinChunks) {
  const Program program = parse_text(
      "program cost\n"
      "tensor q (10, 2) f32\n"
      "tensor v (10, 3) f32\n"
      "tensor g (10, 1) f32\n"
      "tensor bounds (1, 2) i32\n"
      "o (10, 3) f32 = gated_delta_rule(q, q, v, g, g, bounds) {key_heads 1, value_heads 1}\n");
  const double token = 2.0 * (3.0 * 6.0 + 32.0 * (2.0 * 2.0 + 2.0 * 3.0));
  EXPECT_DOUBLE_EQ(cost_of({program, program.operations[0]}, {}).flops, 10.0 * token);
}

// A run moves the states of its own segments, however many places there are.
TEST(RecurrenceShapes, CostsTheStatesOfItsSegments) {
  const auto bytes_with = [](const char* places) {
    const Program program =
        parse_text(std::string("program cost\ntensor q (10, 2) f32\ntensor v (10, 3) f32\n"
                               "tensor g (10, 1) f32\ntensor bounds (2, 2) i32\n"
                               "tensor states (") +
                   places +
                   ", 6) f32\no (10, 3) f32 = gated_delta_rule(q, q, v, g, g, bounds, bounds) "
                   "updates (states) {key_heads 1, value_heads 1, cached}\n");
    return cost_of({program, program.operations[0]}, {}).bytes;
  };
  EXPECT_DOUBLE_EQ(bytes_with("2"), bytes_with("70"));
  EXPECT_GT(bytes_with("2"), bytes_with("1"));
}

}  // namespace
}  // namespace snug::program
