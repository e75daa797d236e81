// A worker takes the next rows of a tensor, reads and rounds them in its own buffers, and hands
// them in when all earlier rows are written. What the source holds so is copied as bytes.
#include "convert/folder/write_folder.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/finite.h"
#include "base/seconds_since.h"
#include "convert/folder/companions.h"
#include "convert/folder/ordered_pieces.h"
#include "formats/adapter/torch_name.h"
#include "formats/folder/directory_transaction.h"
#include "models/config/multimodal.h"
#include "runtime/conversion/convert.h"
#include "runtime/storage/check_finite.h"

namespace snug::convert {
namespace {

namespace fs = std::filesystem;
using base::DType;
using formats::TensorSpec;
using nlohmann::json;

// The values of a piece in fp32, as far as whole rows allow. An adapter's factors are read for each
// piece, so that it should be much larger than they are.
constexpr int64_t kPieceValueBytes = int64_t{8} << 20;

bool is_copied(const SourceTensor& tensor, const WriteOptions& options) {
  if (!tensor.is_stored_so) return false;
  if (tensor.is_other || !tensor.stored_dtype.empty() || !base::is_float(tensor.dtype)) return true;
  return !options.dtype || *options.dtype == tensor.dtype;
}

TensorSpec spec_of(const SourceTensor& tensor, const WriteOptions& options) {
  TensorSpec spec{tensor.name, tensor.dtype, tensor.shape, tensor.stored_dtype};
  if (!is_copied(tensor, options) && !tensor.is_other)
    spec.dtype = options.dtype.value_or(tensor.dtype);
  return spec;
}

std::vector<TensorSpec> specs_of(const WeightSource& source, const WriteOptions& options) {
  std::vector<TensorSpec> specs;
  specs.reserve(source.tensors().size());
  for (const SourceTensor& tensor : source.tensors()) specs.push_back(spec_of(tensor, options));
  return specs;
}

int64_t piece_rows(const SourceTensor& tensor) {
  const int64_t row_bytes = std::max<int64_t>(tensor.row_elements() * kValueBytes, 1);
  return std::clamp<int64_t>(kPieceValueBytes / row_bytes, 1, std::max<int64_t>(tensor.rows(), 1));
}

// The sizes of a worker's buffers, and what reading allocates.
struct PieceBytes {
  int64_t values = 0;
  int64_t rounded = 0;
  int64_t reading = 0;
  int64_t sum() const { return values + rounded + reading; }
};

PieceBytes piece_bytes(const WeightSource& source, const WriteOptions& options) {
  PieceBytes bytes;
  for (const SourceTensor& tensor : source.tensors()) {
    if (is_copied(tensor, options)) {
      bytes.values =
          std::max(bytes.values, std::min(kPieceValueBytes, spec_of(tensor, options).bytes()));
      continue;
    }
    const int64_t rows = piece_rows(tensor);
    const int64_t elements = rows * tensor.row_elements();
    bytes.values = std::max(bytes.values, elements * kValueBytes);
    const DType type = spec_of(tensor, options).dtype;
    if (type != DType::f32) bytes.rounded = std::max(bytes.rounded, elements * base::size_of(type));
    bytes.reading = std::max(bytes.reading, source.read_bytes(tensor, rows));
  }
  return bytes;
}

// Rows of a tensor to convert, or bytes to copy.
struct RowPiece {
  const SourceTensor* tensor = nullptr;
  int64_t first = 0;
  int64_t count = 0;
  bool is_copied = false;
};

class Writing {
 public:
  Writing(const WeightSource& source, const WriteOptions& options, formats::ModelWriter& writer)
      : source_(source), options_(options), writer_(writer) {
    const PieceBytes bytes = piece_bytes(source, options);
    for (Buffers& buffers : buffers_) {
      buffers.values.resize(static_cast<size_t>((bytes.values + kValueBytes - 1) / kValueBytes));
      buffers.rounded.resize(static_cast<size_t>(bytes.rounded));
    }
  }

  int64_t run() {
    OrderedPieces<RowPiece>().run(
        [&] { return take(); },
        [&](const RowPiece& piece, size_t worker) { make(piece, buffers_[worker]); },
        [&](const RowPiece& piece, size_t worker) { write(piece, buffers_[worker]); });
    return written_;
  }

 private:
  struct Buffers {
    std::vector<float> values;
    std::vector<std::byte> rounded;
  };

  std::optional<RowPiece> take() {
    while (tensor_ < source_.tensors().size()) {
      const SourceTensor& tensor = source_.tensors()[tensor_];
      const bool copied = is_copied(tensor, options_);
      const int64_t all = copied ? spec_of(tensor, options_).bytes() : tensor.rows();
      const int64_t count = std::min(all - next_, copied ? kPieceValueBytes : piece_rows(tensor));
      const RowPiece piece{&tensor, next_, count, copied};
      next_ += count;
      if (next_ == all) {
        next_ = 0;
        ++tensor_;
      }
      if (count > 0) return piece;
    }
    return std::nullopt;
  }

  static std::byte* bytes_of(Buffers& buffers) {
    return reinterpret_cast<std::byte*>(buffers.values.data());
  }

  void make(const RowPiece& piece, Buffers& buffers) const {
    if (piece.is_copied) return copy(piece, buffers);
    const int64_t elements = piece.count * piece.tensor->row_elements();
    const std::span<float> values{buffers.values.data(), static_cast<size_t>(elements)};
    source_.read(*piece.tensor, piece.first, piece.count, values);
    const DType type = spec_of(*piece.tensor, options_).dtype;
    if (type != DType::f32)
      runtime::convert(DType::f32, values.data(), type, buffers.rounded.data(), elements);
    check(piece, type, type == DType::f32 ? bytes_of(buffers) : buffers.rounded.data());
  }

  // Of the model's own weights no infinity gets through, which none computes with.
  void copy(const RowPiece& piece, Buffers& buffers) const {
    const SourceTensor& tensor = *piece.tensor;
    source_.copy(tensor, piece.first, {bytes_of(buffers), static_cast<size_t>(piece.count)});
    if (tensor.is_other || !tensor.stored_dtype.empty() || !base::is_float(tensor.dtype)) return;
    const int64_t width = base::size_of(tensor.dtype);
    const auto found = base::first_not_finite(tensor.dtype, bytes_of(buffers), piece.count / width);
    if (!found) return;
    base::throw_user_error(
        "tensor '{}' of the model holds an infinity or NaN at {}, with which nothing can be "
        "computed. Is the file whole (download or copy it again), and was the model trained to the "
        "end?",
        tensor.name, runtime::position_text(tensor.shape, piece.first / width + *found));
  }

  void check(const RowPiece& piece, DType type, const std::byte* rounded) const {
    const SourceTensor& tensor = *piece.tensor;
    const int64_t width = tensor.row_elements();
    const auto found = base::first_not_finite(type, rounded, piece.count * width);
    if (!found) return;
    base::throw_user_error("tensor '{}' has a number at {} that {} cannot hold; {}", tensor.name,
                           runtime::position_text(tensor.shape, piece.first * width + *found),
                           formats::torch_name(type),
                           type == DType::f16
                               ? "write the model in another type: dtype=bf16 or dtype=fp32"
                               : "is the adapter whole, and was it trained to the end?");
  }

  void write(const RowPiece& piece, Buffers& buffers) {
    const SourceTensor& tensor = *piece.tensor;
    if (piece.is_copied) {
      written_ += writer_.write(tensor.name, bytes_of(buffers), piece.count);
      return;
    }
    const DType type = spec_of(tensor, options_).dtype;
    const std::byte* data = type == DType::f32 ? bytes_of(buffers) : buffers.rounded.data();
    written_ +=
        writer_.write(tensor.name, data, piece.count * tensor.row_elements() * base::size_of(type));
  }

  const WeightSource& source_;
  const WriteOptions& options_;
  formats::ModelWriter& writer_;
  std::array<Buffers, kPieceWorkers> buffers_;
  size_t tensor_ = 0;
  int64_t next_ = 0;
  int64_t written_ = 0;
};

// transformers 5 writes "dtype", earlier ones "torch_dtype"; both read the latter.
void set_type(json& config, DType type, bool is_required) {
  const bool has_new = config.contains("dtype");
  if (has_new) config["dtype"] = formats::torch_name(type);
  if (config.contains("torch_dtype") || (is_required && !has_new))
    config["torch_dtype"] = formats::torch_name(type);
}

std::string config_text(const WeightSource& source, const WriteOptions& options) {
  json config = source.config();
  config.erase("quantization_config");
  const DType type = written_type(source, options);
  set_type(config, type, true);
  if (json* part = models::text_part(config)) set_type(*part, type, false);
  return config.dump(2) + "\n";
}

}  // namespace

DType written_type(const WeightSource& source, const WriteOptions& options) {
  std::array<int64_t, 8> elements{};
  for (const SourceTensor& tensor : source.tensors()) {
    const DType type = spec_of(tensor, options).dtype;
    if (tensor.stored_dtype.empty() && base::is_float(type) && !tensor.is_other)
      elements[static_cast<size_t>(type)] += tensor.elements();
  }
  const auto most = std::ranges::max_element(elements) - elements.begin();
  const DType type = static_cast<DType>(most);
  return type == DType::f64 ? DType::f32 : type;
}

FolderCosts folder_costs(const WeightSource& source, const WriteOptions& options) {
  FolderCosts costs;
  costs.source_bytes = source.stored_bytes();
  for (const TensorSpec& spec : specs_of(source, options))
    costs.result_bytes += spec.bytes() + std::ssize(spec.name) + kHeaderBytes;
  costs.buffer_bytes = int64_t{kPieceWorkers} * piece_bytes(source, options).sum();
  return costs;
}

FolderReport write_folder(const WeightSource& source, const WriteOptions& options,
                          const fs::path& output) {
  const auto start = std::chrono::steady_clock::now();
  check_output(output, folder_costs(source, options).result_bytes);
  formats::DirectoryTransaction transaction(output);
  const fs::path& folder = transaction.staging();
  formats::ModelWriter writer(folder, specs_of(source, options), options.max_shard_bytes);
  FolderReport report;
  report.result_bytes = Writing(source, options, writer).run();
  writer.finish();
  base::write_file_atomically(folder / "config.json", config_text(source, options));
  copy_companions(source.companions(), options.companions, folder);
  if (options.complete) options.complete(folder);
  // An earlier check found at most an empty folder there.
  transaction.commit(formats::DirectoryTransaction::IfExists::replace);
  report.seconds = base::seconds_since(start);
  return report;
}

}  // namespace snug::convert
