// How the CUDA backend chooses the algorithm of a product, on the emulated device, whose algorithms
// give different bits: the fastest, and that of an earlier run before it.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "../base/captured_stream.h"
#include "algorithms.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/product/thin_product.h"
#include "base/error.h"
#include "comparison.h"
#include "operation_check.h"
#include "program/ir/builder.h"
#include "program/kinds/product/matmul.h"

namespace snug::backends::cuda {
namespace {

using cuda_emulator::algorithms;
using program::Shape;

using Floats = std::vector<float>;

// c += a b^T in f32, on a backend of its own.
class OneProduct {
 public:
  explicit OneProduct(const BackendOptions& options = {}) : backend_(options) {
    program::Builder builder("test");
    for (const Shape& shape : {Shape{33, 300}, Shape{48, 300}, Shape{33, 48}}) {
      program::Tensor tensor;
      tensor.name = fmt::format("t{}", builder.program().tensors.size());
      tensor.shape = shape;
      builder.add(tensor);
    }
    program::Matmul matmul;
    matmul.transpose_b = true;
    matmul.accumulate = true;
    builder.emit(matmul, {0, 1}, {}, {2});
    program_ = builder.take();
    program::Operation& operation = program_.operations[0];
    operation.attributes = backend_.decide({program_, operation});
    operation.launches = backend_.launches({program_, operation});
    for (const program::Tensor& tensor : program_.tensors) {
      Floats values(static_cast<size_t>(tensor.shape.elements()));
      std::normal_distribution<float> normal;
      std::generate(values.begin(), values.end(), [&] { return normal(generator_); });
      values_.push_back(values);
    }
    program::Tensor workspace;
    workspace.name = "workspace";
    workspace.dtype = program::DType::u8;
    workspace.shape = {backend_.workspace({program_, program_.operations[0]}).bytes};
    program_.operations[0].workspace = static_cast<program::TensorId>(program_.tensors.size());
    program_.tensors.push_back(workspace);
  }

  CudaBackend& backend() { return backend_; }

  // What c holds after preparation, tuning, loading and running.
  Floats run() {
    const program::OperationView view{program_, program_.operations[0]};
    std::vector<Buffer> buffers;
    for (const program::Tensor& tensor : program_.tensors) {
      arenas_.push_back(backend_.allocate(program::Space::device, tensor.bytes()));
      buffers.push_back({arenas_.back()->data(), tensor.dtype, tensor.shape,
                         program::dense_strides(tensor.shape)});
    }
    const std::unique_ptr<Prepared> prepared = backend_.prepare(view);
    Invocation invocation;
    invocation.attributes = &view.operation.attributes;
    invocation.reads = std::span(buffers).subspan(0, 2);
    invocation.updates = std::span(buffers).subspan(2, 1);
    invocation.workspace = buffers[3];
    invocation.prepared = prepared.get();
    backend_.tune(invocation);
    for (size_t i = 0; i < values_.size(); ++i) {
      EXPECT_EQ(read(buffers[i]), Floats(values_[i].size())) << "left by tuning";
      backend_.copy(buffers[i].data, values_[i].data(), buffers[i].bytes());
    }
    backend_.run(invocation);
    return read(buffers[2]);
  }

 private:
  Floats read(const Buffer& buffer) {
    Floats values(static_cast<size_t>(buffer.elements()));
    backend_.copy(values.data(), buffer.data, buffer.bytes());
    return values;
  }

  std::mt19937 generator_{7};
  program::Program program_;
  std::vector<Floats> values_;
  CudaBackend backend_;
  std::vector<std::unique_ptr<Arena>> arenas_;
};

class CudaProducts : public ::testing::Test {
 protected:
  CudaProducts() : whole_(bits_of(0)), in_parts_(bits_of(3)) {}
  ~CudaProducts() override { algorithms = usual_; }

  static void make_fastest(size_t number) {
    for (size_t i = 0; i < algorithms.size(); ++i)
      algorithms[i].extra = std::chrono::seconds(i == number ? 0 : 4);
  }
  static Floats bits_of(size_t number) {
    make_fastest(number);
    return OneProduct().run();
  }
  // What a run chose that found this one the fastest.
  static std::string choices_of(size_t number) {
    make_fastest(number);
    OneProduct product;
    product.run();
    return product.backend().choices().text;
  }

  const decltype(algorithms) usual_ = algorithms;
  const Floats whole_;
  const Floats in_parts_;
};

TEST_F(CudaProducts, TakeTheFastest) {
  EXPECT_NE(whole_, in_parts_) << "the emulated algorithms agree to the last bit";
  EXPECT_EQ(bits_of(0), whole_);
  EXPECT_EQ(bits_of(3), in_parts_);
}

TEST_F(CudaProducts, PassOverWhatIsNotOfferedOrDoesNotRun) {
  for (const size_t number : {1, 2}) {
    make_fastest(number);
    algorithms[3].extra = std::chrono::seconds(2);
    EXPECT_EQ(OneProduct().run(), in_parts_);
  }
}

TEST_F(CudaProducts, TakeTheChoiceOfAnEarlierRunBeforeTheFastest) {
  const std::string earlier = choices_of(3);
  make_fastest(0);
  OneProduct product;
  EXPECT_EQ(product.backend().take_choices(earlier, "a.json"), "");
  EXPECT_EQ(product.run(), in_parts_);
  EXPECT_EQ(product.backend().choices().text, earlier) << "and hand it on";
  EXPECT_EQ(product.backend().choices().summary,
            "algorithms of matrix products: 1 as in the run before, 0 timed now");
}

TEST_F(CudaProducts, TimeAnewWhatTheLibraryNoLongerRuns) {
  const std::string earlier = choices_of(3);
  algorithms[3].runs = false;
  OneProduct product;
  EXPECT_EQ(product.backend().take_choices(earlier, "a.json"), "");
  EXPECT_EQ(product.run(), whole_);
  EXPECT_EQ(product.backend().choices().summary,
            "algorithms of matrix products: 0 as in the run before, 1 timed now; 1 of the earlier "
            "run's cannot run here");
}

TEST_F(CudaProducts, RefusesAProductThatTheLibraryDoesNotRun) {
  for (auto& algorithm : algorithms) algorithm.runs = false;
  EXPECT_THROW(OneProduct().run(), base::UserError);
  for (auto& algorithm : algorithms) algorithm.is_offered = false;
  EXPECT_THROW(OneProduct().run(), base::UserError);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST_F(CudaProducts, RefuseChoicesThatAreDamagedOrOfAnotherPlace) {
  const std::string good = choices_of(3);
  make_fastest(0);
  const auto expect_refusal = [&](const std::string& text, const std::string& reason) {
    OneProduct product;
    const std::string refusal = product.backend().take_choices(text, "a.json");
    EXPECT_NE(refusal.find(reason), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("a.json"), std::string::npos) << refusal;
    EXPECT_EQ(product.run(), whole_) << "what was refused was taken";
  };
  expect_refusal("", "not valid JSON");
  expect_refusal(good.substr(0, good.size() / 2), "not valid JSON");
  expect_refusal(replaced(good, "snug algorithms 1", "snug algorithms 2"), "'format' is not");
  expect_refusal(replaced(good, "emulated", "NVIDIA H100"),
                 "was chosen on NVIDIA H100 of 4 multiprocessors, cuBLASLt 130001, and this is "
                 "emulated of 4 multiprocessors, cuBLASLt 130001");
  expect_refusal(replaced(good, "130001", "130002"), "was chosen on");
  expect_refusal(replaced(good, ": 65536", ": 2048"), "a workspace of 2048 bytes");
  expect_refusal(replaced(good, "\"products\"", "\"productz\""), "products");
  expect_refusal(replaced(good, "\"algorithm\": \"", "\"algorithm\": \"0"), "nor 128 hex digits");
  expect_refusal(replaced(good, "\"algorithm\": \"0", "\"algorithm\": \"g"), "hex digits");
}

// Whether a case of the table is one that the own kernel makes.
bool is_thin(const test::OperationCase& operation_case) {
  const auto& matmul = operation_case.operation().attributes.get<program::Matmul>();
  const program::OperationView view = operation_case.view();
  const auto is_whole = [](const program::Tensor& tensor) {
    return !tensor.is_view() && tensor.shape[0] % 8 == 0 && tensor.shape[1] % 8 == 0;
  };
  if (!is_whole(view[program::Matmul::kA]) || !is_whole(view[program::Matmul::kB])) return false;
  const Shape& c = view[program::Matmul::kC].shape;
  if (matmul.transpose_a) return !matmul.transpose_b && std::min(c[0], c[1]) <= kMaxThin;
  return c[1] <= kMaxThin;
}

TEST_F(CudaProducts, TakeTheOwnKernelForThinOnesWhereItIsTheFastest) {
  for (auto& algorithm : algorithms) algorithm.extra = std::chrono::seconds(100);
  int cases = 0;
  for (const test::Types& types : {test::kAllTypes[1], test::kAllTypes[2], test::kAllTypes[4]})
    for (const test::OperationCase& thin : test::cases_of(program::Kind::matmul, types)) {
      if (!is_thin(thin)) continue;
      SCOPED_TRACE(fmt::format("{} [{}]", thin.name, thin.types()));
      CudaBackend backend({});
      const test::RunResult result = test::guarded_run(backend, thin.program, thin.inputs);
      EXPECT_NE(backend.choices().text.find(kThinName), std::string::npos);
      for (const std::string& violation : result.violations) ADD_FAILURE() << violation;
      const test::RunResult oracle = test::oracle_of(thin);
      for (const auto& [id, values] : result.values)
        EXPECT_LE(test::relative_error(values, oracle.values.at(id)), 1e-2);
      ++cases;
    }
  EXPECT_GE(cases, 60) << "of the table";
}

// a^T b in bf16 over so many rows: a sum that the own kernel makes in parts.
program::Program long_sum(const CudaBackend& backend) {
  program::Builder builder("test");
  for (const Shape& shape : {Shape{2048, 64}, Shape{2048, 16}, Shape{64, 16}}) {
    program::Tensor tensor;
    tensor.name = fmt::format("t{}", builder.program().tensors.size());
    tensor.dtype = program::DType::bf16;
    tensor.shape = shape;
    builder.add(tensor);
  }
  program::Matmul matmul;
  matmul.transpose_a = true;
  builder.emit(matmul, {0, 1}, {2});
  program::Program program = builder.take();
  program::Operation& operation = program.operations[0];
  operation.attributes = backend.decide({program, operation});
  operation.launches = backend.launches({program, operation});
  program::Tensor workspace;
  workspace.name = "workspace";
  workspace.dtype = program::DType::u8;
  workspace.shape = {backend.workspace({program, operation}).bytes};
  operation.workspace = static_cast<program::TensorId>(program.tensors.size());
  program.tensors.push_back(workspace);
  return program;
}

TEST_F(CudaProducts, AreRefusedWhereTheirTimedOnesTakeMoreThanIsPlanned) {
  CudaBackend backend({});
  const program::Program planned = long_sum(backend);
  EXPECT_EQ(planned.operations[0].launches, 2) << "parts, and their sum";
  EXPECT_NE(backend.prepare({planned, planned.operations[0]}), nullptr);
  program::Program fewer = planned;
  fewer.operations[0].launches = 1;
  EXPECT_TRUE(testing::dies(
      [&] {
        (void)backend.prepare({fewer, fewer.operations[0]});
      },
      "takes 2 launches here, planned were 1"));
  program::Program smaller = planned;
  smaller.tensors.back().shape = {1024};
  EXPECT_TRUE(testing::dies(
      [&] {
        (void)backend.prepare({smaller, smaller.operations[0]});
      },
      "bytes of workspace"));
}

TEST_F(CudaProducts, AreTimedForTheHeadsLossToo) {
  const auto kind = program::Kind::linear_cross_entropy_train;
  make_fastest(3);
  CudaBackend backend({});
  test::check_kind(backend, kind, test::cuda_must_run, true);
  EXPECT_NE(backend.choices().text, "");
}

TEST(ThinParts, FillTheCardAndFitTheScratch) {
  constexpr int64_t kMebibyte = 1 << 20;
  EXPECT_EQ(thin_parts(16384, 4096, 16, 132, 32 * kMebibyte), 3);  // x A^T: blocks for rows
  EXPECT_EQ(thin_parts(4096, 16384, 16, 132, 32 * kMebibyte), 9);  // dA: 64 columns per block
  EXPECT_EQ(thin_parts(4096, 512, 16, 132, 32 * kMebibyte), 2);    // four steps each
  EXPECT_EQ(thin_parts(4096, 16384, 64, 132, 3 * kMebibyte), 3);   // a mebibyte a part
  EXPECT_EQ(thin_parts(4096, 16384, 64, 132, 1000), 1);
}

TEST_F(CudaProducts, TakeTheFirstOfferWhereTimingIsOff) {
  make_fastest(3);
  OneProduct by_options({.chooses_by_timing = false});
  setenv("SNUG_CUDA_TIMING", "off", 1);
  OneProduct by_environment;
  unsetenv("SNUG_CUDA_TIMING");
  for (OneProduct* product : {&by_options, &by_environment}) {
    EXPECT_EQ(product->run(), whole_);
    EXPECT_EQ(product->backend().choices().text, "");
    EXPECT_EQ(product->backend().choices().summary, "");
  }
}

}  // namespace
}  // namespace snug::backends::cuda
