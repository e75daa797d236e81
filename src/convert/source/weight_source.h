// Where the weights of a model come from when they leave: a model folder, the same with an adapter
// merged into it, or a GGUF file. A source lists the tensors of a Hugging Face folder in 16 or 32
// bits, under their names there, and gives their values in fp32, whatever its files hold. Nothing
// is held in memory but what a caller asks for. Threading: const; distinct destinations may be
// filled in parallel.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "models/config/config.h"

namespace snug::convert {

// The bytes of a value that a source gives.
inline constexpr int64_t kValueBytes = sizeof(float);

struct SourceTensor {
  std::string name;            // "model.layers.0.self_attn.q_proj.weight"
  std::vector<int64_t> shape;  // as in the folder: a linear of most families is (out, in)
  // The type in which a folder holds it that changes nothing: that of the source's files, or for
  // what they hold quantised the type of the model's other weights.
  base::DType dtype = base::DType::f32;
  // Whether the source's files hold exactly these bytes, so that a folder of the same type copies
  // them.
  bool is_stored_so = false;
  // The name that the model has for the weight (models/weights.h), where that is another: files of
  // a multimodal model have a prefix.
  std::string weight{};
  // No weight of the text model that Snug knows, such as an encoder of images or a buffer.
  bool is_other = false;
  // The element type by the files' name ("F8_E4M3"), where base::DType has none: the tensor
  // is_stored_so, is only copied, and has no values.
  std::string stored_dtype{};
  int64_t stored_bytes = 0;  // of such a tensor

  const std::string& weight_name() const { return weight.empty() ? name : weight; }
  int64_t elements() const;
  int64_t rows() const;          // the size of the first axis; 1 for a single number
  int64_t row_elements() const;  // elements() / rows()
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // In the order in which reading is sequential.
  virtual std::span<const SourceTensor> tensors() const = 0;
  // config.json of the folder in 16 or 32 bits that the source stands for, without
  // quantization_config and with tie_word_embeddings as the tensors are.
  virtual const nlohmann::json& config() const = 0;
  // The folder whose tokenizer and other small files belong to the model; empty if there is none.
  virtual const std::filesystem::path& companions() const = 0;
  // The text model; nullptr where Snug knows none, which is so of some multimodal models.
  virtual const models::ModelConfig* model() const { return nullptr; }

  // The bytes that reading all tensors once takes from files.
  virtual int64_t stored_bytes() const = 0;
  // The most bytes of buffers that one call of read for this many rows of a tensor allocates.
  virtual int64_t read_bytes(const SourceTensor& tensor, int64_t rows) const = 0;

  // Writes the values of rows [first, first + rows) into `values`, rows x row_elements() numbers.
  // `tensor` is one of tensors(). Throws UserError for a damaged file, and for a value that is not
  // finite.
  virtual void read(const SourceTensor& tensor, int64_t first, int64_t rows,
                    std::span<float> values) const = 0;
  // Copies bytes of a tensor that is_stored_so, from its byte `offset` on.
  virtual void copy(const SourceTensor& tensor, int64_t offset,
                    std::span<std::byte> bytes) const = 0;
};

}  // namespace snug::convert
