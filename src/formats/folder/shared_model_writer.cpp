#include "formats/folder/shared_model_writer.h"

#include "base/error.h"

namespace snug::formats {

namespace fs = std::filesystem;

SharedModelWriter::SharedModelWriter(const fs::path& folder, const std::vector<TensorSpec>& tensors,
                                     int64_t max_shard_bytes, const std::string& stem)
    : folder_(folder), stem_(stem), plan_(model_files(folder, tensors, max_shard_bytes, stem)) {
  for (size_t file = 0; file < plan_.size(); ++file) {
    const SafetensorsHeader header = lay_out(plan_[file].tensors);
    headers_.push_back(make_safetensors_header(header));
    const int64_t data = std::ssize(headers_.back());
    file_bytes_.push_back(data + header.data_bytes);
    for (const TensorInfo& tensor : header.tensors) {
      const bool is_new =
          places_.emplace(tensor.name, Place{file, data + tensor.begin, tensor.bytes()}).second;
      SNUG_CHECK(is_new, "tensor {} is declared twice", tensor.name);
    }
  }
}

void SharedModelWriter::create() {
  for (size_t i = 0; i < plan_.size(); ++i) {
    files_.push_back(base::File::create(plan_[i].path));
    base::File& file = files_.back();
    file.reserve(file_bytes_[i]);
    file.truncate(file_bytes_[i]);
    file.write_at(0, headers_[i].data(), std::ssize(headers_[i]));
  }
}

void SharedModelWriter::open() {
  for (const ModelFile& file : plan_) {
    if (!base::is_there(file.path))
      base::throw_user_error(
          "{}: the first rank made this file and it is not here; the folder must lie on a file "
          "system that all ranks share",
          file.path.string());
    files_.push_back(base::File::open_for_update(file.path));
  }
}

int64_t SharedModelWriter::write(std::string_view name, int64_t offset, const void* source,
                                 int64_t bytes) {
  const auto found = places_.find(std::string(name));
  SNUG_CHECK(found != places_.end(), "tensor {} was not declared", name);
  const Place& place = found->second;
  SNUG_CHECK(offset >= 0 && bytes >= 0 && offset + bytes <= place.bytes,
             "bytes {} to {} of tensor {}, which has {}", offset, offset + bytes, name,
             place.bytes);
  if (bytes > 0) files_[place.file].write_at(place.begin + offset, source, bytes);
  return bytes;
}

void SharedModelWriter::sync() {
  for (base::File& file : files_) file.sync();
}

void SharedModelWriter::finish() {
  for (size_t i = 0; i < plan_.size(); ++i) {
    SNUG_CHECK_EQ(files_[i].size(), file_bytes_[i]);
    files_[i].close();
  }
  write_index(folder_, plan_, stem_);
}

}  // namespace snug::formats
