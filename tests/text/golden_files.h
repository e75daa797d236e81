// Reading the goldens that scripts/make_tokenizer_goldens.py writes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <string>

namespace snug::text {

inline const std::string kGoldens = "tests/text/goldens/";
inline const std::string kSharedData = "../shared/data/";

inline std::string contents_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot open " + path);
  std::ostringstream contents;
  contents << stream.rdbuf();
  return std::move(contents).str();
}

inline nlohmann::ordered_json json_of(const std::string& path) {
  return nlohmann::ordered_json::parse(contents_of(path));
}

// The tokenizer.json that a variant of pipelines.json describes: one of the small tokenizers with
// other keys; those of the model that are null are left out.
inline std::string document_of(const nlohmann::ordered_json& variant) {
  auto document = json_of(kGoldens + "tiny/" + variant["base"].get<std::string>() + ".json");
  for (const auto& item : variant["document"].items()) document[item.key()] = item.value();
  for (const auto& item : variant["model"].items()) {
    document["model"].erase(item.key());
    if (!item.value().is_null()) document["model"][item.key()] = item.value();
  }
  return document.dump();
}

// FNV-1a over whole numbers, as in the script.
class Hash {
 public:
  void add(uint64_t number) { value_ = (value_ ^ number) * 0x100000001b3ULL; }
  std::string hex() const {
    std::ostringstream out;
    out << std::hex << std::setfill('0') << std::setw(16) << value_;
    return out.str();
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325ULL;
};

inline std::string hash_of(std::span<const int32_t> ids) {
  Hash hash;
  for (const int32_t id : ids) hash.add(static_cast<uint64_t>(id));
  return hash.hex();
}

inline std::string hash_of(const std::string& text) {
  Hash hash;
  for (const char c : text) hash.add(static_cast<unsigned char>(c));
  return hash.hex();
}

}  // namespace snug::text
