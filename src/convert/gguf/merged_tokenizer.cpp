#include "convert/gguf/merged_tokenizer.h"

#include <array>

#include "base/file.h"
#include "convert/folder/companions.h"

namespace snug::convert {

namespace fs = std::filesystem;

namespace {

fs::path with_parents(const fs::path& path) {
  fs::create_directories(fs::absolute(path).lexically_normal().parent_path());
  return path;
}

}  // namespace

MergedTokenizer::MergedTokenizer(const fs::path& model, const fs::path& adapter,
                                 const fs::path& output)
    : staging_(with_parents(output.string() + ".tokenizer")) {
  fs::create_directories(folder());
  copy_companions(model, std::array{adapter}, folder());
  // It has the family, and ends that no other file may name.
  fs::copy_file(model / "config.json", folder() / "config.json");
}

}  // namespace snug::convert
