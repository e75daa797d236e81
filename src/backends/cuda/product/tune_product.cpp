#include "backends/cuda/product/tune_product.h"

#include <vector>

#include "backends/cuda/device/stream.h"
#include "backends/cuda/elementwise/kernels/elementwise.h"
#include "backends/cuda/kernels/random_values.h"
#include "backends/cuda/product/matrices.h"
#include "base/error.h"
#include "base/median.h"

namespace snug::backends::cuda {
namespace {

constexpr size_t kRounds = 5;

Buffer buffer_of(const StoredMatrix& matrix, const void* data) {
  return {.data = static_cast<std::byte*>(const_cast<void*>(data)),
          .dtype = matrix.dtype,
          .shape = {matrix.rows, matrix.columns},
          .strides = {matrix.stride, 1}};
}

class Tuning {
 public:
  Tuning(const Product& product, const Product::Addresses& addresses, const TuningPlace& place)
      : product_(product), addresses_(addresses), place_(place) {}

  struct Fastest {
    Algorithm algorithm;
    double seconds;
  };
  // Runs the chosen algorithm once, unless the product has run.
  void load(Product& product) const {
    if (product.is_loaded()) return;
    product.load(addresses_, place_.workspace, place_.stream);
    clear({buffer_of(product_.shape().c, addresses_.c)});
  }

  Fastest find() {
    fill_factors();
    const std::vector<Algorithm> running = warm_up();
    const std::vector<double> seconds = time(running);
    const ProductShape& shape = product_.shape();
    clear({buffer_of(shape.a, addresses_.a), buffer_of(shape.b, addresses_.b),
           buffer_of(shape.c, addresses_.c)});
    CUDA_CHECK(cudaStreamSynchronize(place_.stream));
    const auto least = std::min_element(seconds.begin(), seconds.end());
    return {running[static_cast<size_t>(least - seconds.begin())], *least};
  }

 private:
  void fill_factors() const {
    for (const Buffer& factor : {buffer_of(product_.shape().a, addresses_.a),
                                 buffer_of(product_.shape().b, addresses_.b)}) {
      const Matrix matrix = matrix_of(factor);
      fill_noise({walk_rows({&matrix}), matrix.operand}, place_.stream);
    }
  }

  void clear(const std::vector<Buffer>& touched) const {
    for (const Buffer& buffer : touched) {
      const Matrix matrix = matrix_of(buffer);
      fill_zero({walk_rows({&matrix}), matrix.operand}, place_.stream);
    }
  }

  bool run(const Algorithm& algorithm) const {
    return product_.try_algorithm(algorithm, addresses_, place_.workspace, place_.stream);
  }

  // The algorithms that run, after one run of each.
  std::vector<Algorithm> warm_up() const {
    std::vector<Algorithm> running;
    for (const Algorithm& algorithm : product_.offers())
      if (run(algorithm)) running.push_back(algorithm);
    if (running.empty()) product_.refuse();
    return running;
  }

  // The median time of each algorithm.
  std::vector<double> time(const std::vector<Algorithm>& running) const {
    const size_t count = running.size();
    CudaEvents events(2 * kRounds * count, place_.stream);
    const auto begin_of = [&](size_t round, size_t i) { return 2 * (round * count + i); };
    for (size_t round = 0; round < kRounds; ++round)
      for (size_t i = 0; i < count; ++i) {
        events.mark(begin_of(round, i));
        SNUG_CHECK(run(running[i]), "cuBLASLt refuses an algorithm that ran before");
        events.mark(begin_of(round, i) + 1);
      }
    std::vector<double> medians;
    for (size_t i = 0; i < count; ++i) {
      std::vector<double> seconds;
      for (size_t round = 0; round < kRounds; ++round)
        seconds.push_back(events.seconds(begin_of(round, i), begin_of(round, i) + 1));
      medians.push_back(base::median(std::move(seconds)));
    }
    return medians;
  }

  const Product& product_;
  const Product::Addresses& addresses_;
  const TuningPlace& place_;
};

}  // namespace

void tune_product(Product& product, const Product::Addresses& addresses, const TuningPlace& place,
                  CublasLt& library) {
  Tuning tuning(product, addresses, place);
  if (product.is_chosen() || product.offers().size() == 1 || !library.times())
    return tuning.load(product);
  const Tuning::Fastest fastest = tuning.find();
  product.choose_loaded(fastest.algorithm);
  library.keep_choice(product.shape(), fastest.algorithm, fastest.seconds);
}

}  // namespace snug::backends::cuda
