// cuBLASLt in plain loops; what the library would refuse or get wrong is refused here: shapes that
// do not fit, leading dimensions below the column, addresses less aligned than was promised. It has
// several algorithms (algorithms.h).
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "algorithms.h"
#include "backends/cuda/library/cublas_lt.h"
#include "base/dtype.h"
#include "creations.h"
#include "device_memory.h"
#include "device_record.h"
#include "library_calls.h"
#include "stream.h"

namespace {

using snug::base::BFloat16;
using snug::base::Float16;
using snug::cuda_emulator::algorithms;
using snug::cuda_emulator::AlgorithmStandIn;

class Elements {
 public:
  Elements(const void* data, const LayoutStandIn& layout)
      : data_(static_cast<const std::byte*>(data)), layout_(layout) {}

  float at(uint64_t row, uint64_t column) const {
    const std::byte* from = data_ + offset(row, column);
    if (layout_.type == CUDA_R_16BF) return snug::base::to_float(read<BFloat16>(from));
    if (layout_.type == CUDA_R_16F) return snug::base::to_float(read<Float16>(from));
    return read<float>(from);
  }

  void set(uint64_t row, uint64_t column, float value) const {
    std::byte* to = const_cast<std::byte*>(data_) + offset(row, column);
    if (layout_.type == CUDA_R_16BF)
      write(to, snug::base::to_bfloat16(value));
    else if (layout_.type == CUDA_R_16F)
      write(to, snug::base::to_float16(value));
    else
      write(to, value);
  }

 private:
  template <typename T>
  static T read(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  template <typename T>
  static void write(std::byte* to, const T& value) {
    std::memcpy(to, &value, sizeof value);
  }
  size_t offset(uint64_t row, uint64_t column) const {
    const uint64_t element = row + column * static_cast<uint64_t>(layout_.leading);
    return element * (layout_.type == CUDA_R_32F ? 4 : 2);
  }

  const std::byte* data_;
  const LayoutStandIn& layout_;
};

uint64_t rows_of(const LayoutStandIn& layout, cublasOperation_t operation) {
  return operation == CUBLAS_OP_N ? layout.rows : layout.columns;
}
uint64_t columns_of(const LayoutStandIn& layout, cublasOperation_t operation) {
  return operation == CUBLAS_OP_N ? layout.columns : layout.rows;
}

// op(matrix), dense and column by column.
std::vector<float> packed(const void* data, const LayoutStandIn& layout,
                          cublasOperation_t operation) {
  const Elements from(data, layout);
  std::vector<float> values;
  values.reserve(layout.rows * layout.columns);
  for (uint64_t column = 0; column < columns_of(layout, operation); ++column)
    for (uint64_t row = 0; row < rows_of(layout, operation); ++row)
      values.push_back(operation == CUBLAS_OP_N ? from.at(row, column) : from.at(column, row));
  return values;
}

bool fits(const MatmulStandIn& description, const LayoutStandIn& a, const LayoutStandIn& b,
          const LayoutStandIn& c, const LayoutStandIn& d) {
  for (const LayoutStandIn* layout : {&a, &b, &c, &d})
    if (layout->leading < static_cast<int64_t>(layout->rows)) return false;
  const bool types =
      a.type == b.type && c.type == d.type && (d.type == a.type || d.type == CUDA_R_32F);
  return types && rows_of(a, description.operation_a) == d.rows &&
         columns_of(a, description.operation_a) == rows_of(b, description.operation_b) &&
         columns_of(b, description.operation_b) == d.columns && c.rows == d.rows &&
         c.columns == d.columns;
}

// d = alpha op(a) op(b) + beta c.
struct Factors {
  float alpha;
  const void* a;
  const void* b;
  float beta;
  const void* c;
  void* d;
};
struct Layouts {
  LayoutStandIn a;
  LayoutStandIn b;
  LayoutStandIn c;
  LayoutStandIn d;
};

void multiply(const Factors& factors, const MatmulStandIn& description, const Layouts& layouts,
              uint64_t parts) {
  const std::vector<float> left = packed(factors.a, layouts.a, description.operation_a);
  const std::vector<float> right = packed(factors.b, layouts.b, description.operation_b);
  const uint64_t rows = layouts.d.rows;
  const uint64_t inner = columns_of(layouts.a, description.operation_a);
  std::vector<float> sums(rows);
  std::vector<float> part_sums(rows);
  for (uint64_t j = 0; j < layouts.d.columns; ++j) {
    std::fill(sums.begin(), sums.end(), 0.0F);
    for (uint64_t part = 0; part < parts; ++part) {
      std::fill(part_sums.begin(), part_sums.end(), 0.0F);
      for (uint64_t k = inner * part / parts; k < inner * (part + 1) / parts; ++k)
        for (uint64_t i = 0; i < rows; ++i)
          part_sums[i] += left[k * rows + i] * right[j * inner + k];
      for (uint64_t i = 0; i < rows; ++i) sums[i] += part_sums[i];
    }
    for (uint64_t i = 0; i < rows; ++i) {
      float sum = sums[i] * factors.alpha;
      if (factors.beta != 0) sum += factors.beta * Elements(factors.c, layouts.c).at(i, j);
      Elements(factors.d, layouts.d).set(i, j, sum);
    }
  }
}

// The library's kernels are those of an algorithm and of shapes, loaded when they are first called.
bool load(const MatmulStandIn& description, const Layouts& layouts, uint64_t algorithm) {
  std::string name =
      fmt::format("cublasLt {} {} {}", algorithm, static_cast<int>(description.operation_a),
                  static_cast<int>(description.operation_b));
  for (const LayoutStandIn* layout : {&layouts.a, &layouts.b, &layouts.c, &layouts.d})
    name += fmt::format(" {}:{}x{}", static_cast<int>(layout->type), layout->rows, layout->columns);
  return snug::cuda_emulator::Creations::all().load("library's kernel", name);
}

bool is_aligned(const void* address, uint32_t bytes) {
  return reinterpret_cast<uintptr_t>(address) % bytes == 0;
}

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = nullptr;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
size_t cublasLtGetVersion() { return 130001; }
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success" : "invalid value";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t,
                                        cudaDataType_t) {
  *description = new MatmulStandIn;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete description;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  if (bytes != sizeof(cublasOperation_t)) return CUBLAS_STATUS_INVALID_VALUE;
  auto& operation = attribute == CUBLASLT_MATMUL_DESC_TRANSA ? description->operation_a
                                                             : description->operation_b;
  std::memcpy(&operation, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                          uint64_t rows, uint64_t columns, int64_t leading) {
  *layout = new LayoutStandIn{type, rows, columns, leading};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new PreferenceStandIn;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
    if (bytes != sizeof(size_t)) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&preference->workspace_bytes, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  }
  if (bytes != sizeof(uint32_t)) return CUBLAS_STATUS_INVALID_VALUE;
  if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) {
    std::memcpy(&preference->reduction_schemes, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  }
  const int operand = attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
  std::memcpy(&preference->alignment[operand], value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* found) {
  *found = 0;
  if (wanted < 1 || !fits(*description, *a, *b, *c, *d)) return CUBLAS_STATUS_INVALID_VALUE;
  *found = std::min(wanted, static_cast<int>(algorithms.size()));
  for (int i = 0; i < *found; ++i) {
    const auto number = static_cast<uint64_t>(i);
    results[i] = {
        {number, *preference, {}},
        preference->workspace_bytes,
        algorithms[number].is_offered ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED};
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algo,
                                       cublasLtMatmulHeuristicResult_t* result) {
  if (!fits(*description, *a, *b, *c, *d)) return CUBLAS_STATUS_INVALID_VALUE;
  if (algo->number >= algorithms.size() || !algorithms[algo->number].runs)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  *result = {*algo, algo->preference.workspace_bytes, CUBLAS_STATUS_SUCCESS};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  if (!fits(*description, *a_layout, *b_layout, *c_layout, *d_layout))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (algo->number >= algorithms.size()) return CUBLAS_STATUS_INVALID_VALUE;
  const AlgorithmStandIn& algorithm = algorithms[algo->number];
  if (!algorithm.is_offered || !algorithm.runs) return CUBLAS_STATUS_NOT_SUPPORTED;
  const PreferenceStandIn& promised = algo->preference;
  // Parts of a sum added in the result's type, or in no fixed order.
  if (promised.reduction_schemes != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)
    return CUBLAS_STATUS_INVALID_VALUE;
  const void* addresses[] = {a, b, c, d};
  for (size_t i = 0; i < 4; ++i)
    if (!is_aligned(addresses[i], promised.alignment[i])) return CUBLAS_STATUS_INVALID_VALUE;
  if (workspace_bytes < promised.workspace_bytes) return CUBLAS_STATUS_INVALID_VALUE;
  float alpha_value = 0;
  float beta_value = 0;
  std::memcpy(&alpha_value, alpha, sizeof alpha_value);
  std::memcpy(&beta_value, beta, sizeof beta_value);
  // Descriptions are copied: the library does not need them once the product is queued.
  const Layouts layouts{*a_layout, *b_layout, *c_layout, *d_layout};
  if (!load(*description, layouts, algo->number)) return CUBLAS_STATUS_ALLOC_FAILED;
  snug::cuda_emulator::submit(stream, [=, operations = *description] {
    snug::cuda_emulator::extra_device_time += algorithm.extra;
    ++snug::cuda_emulator::library_calls;
    snug::cuda_emulator::record_device([&] {
      return "cublasLtMatmul: " + std::to_string(layouts.d.columns) + " x " +
             std::to_string(layouts.d.rows) + " of " +
             std::to_string(columns_of(layouts.a, operations.operation_a));
    });
    const snug::cuda_emulator::DeviceAccess access;
    // The library may scribble on all of it.
    std::memset(workspace, 0xff, workspace_bytes);
    multiply({alpha_value, a, b, beta_value, c, d}, operations, layouts, algorithm.sum_parts);
  });
  return CUBLAS_STATUS_SUCCESS;
}

namespace snug::backends::cuda {

const CublasLtFunctions& cublas_lt_functions() {
  static const CublasLtFunctions functions{.create = cublasLtCreate,
                                           .destroy = cublasLtDestroy,
                                           .version = cublasLtGetVersion,
                                           .status_string = cublasLtGetStatusString,
                                           .matmul = cublasLtMatmul,
                                           .matmul_create = cublasLtMatmulDescCreate,
                                           .matmul_destroy = cublasLtMatmulDescDestroy,
                                           .matmul_set = cublasLtMatmulDescSetAttribute,
                                           .layout_create = cublasLtMatrixLayoutCreate,
                                           .layout_destroy = cublasLtMatrixLayoutDestroy,
                                           .preference_create = cublasLtMatmulPreferenceCreate,
                                           .preference_destroy = cublasLtMatmulPreferenceDestroy,
                                           .preference_set = cublasLtMatmulPreferenceSetAttribute,
                                           .find_algorithms = cublasLtMatmulAlgoGetHeuristic,
                                           .check_algorithm = cublasLtMatmulAlgoCheck,
                                           .workspace_bytes = 65536};
  return functions;
}

}  // namespace snug::backends::cuda
