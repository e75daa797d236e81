#include "formats/foreign/tool_file_places.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

namespace snug::formats {
namespace {

// The same limits as in settings_in, since YAML aliases can make a small file expand to a huge
// document.
constexpr int kMaxPlaceDepth = 16;
constexpr size_t kMaxPlaces = 20'000;

class PlaceWalk {
 public:
  explicit PlaceWalk(const std::string& file) : file_(file) {}

  void add(const YAML::Node& node, const std::string& path, int depth) {
    if (depth > kMaxPlaceDepth || places.size() > kMaxPlaces) return;
    if (node.IsMap()) {
      for (const auto& entry : node) {
        if (!entry.first.IsScalar()) continue;
        const std::string& key = entry.first.Scalar();
        note(path.empty() ? key : path + "." + key, entry.first.Mark(), entry.second, depth);
      }
    } else if (node.IsSequence()) {
      size_t i = 0;
      for (const YAML::Node& item : node)
        note(fmt::format("{}[{}]", path, i++), item.Mark(), item, depth);
    }
  }

  std::map<std::string, base::Location> places;

 private:
  void note(const std::string& path, const YAML::Mark& mark, const YAML::Node& node, int depth) {
    places.emplace(path, base::Location{file_, mark.line + 1, mark.column + 1});
    add(node, path, depth + 1);
  }

  const std::string& file_;
};

}  // namespace

std::map<std::string, base::Location> tool_file_places(std::string_view text,
                                                       const std::string& file) {
  PlaceWalk walk(file);
  try {
    walk.add(YAML::Load(std::string(text)), "", 0);
  } catch (const YAML::Exception&) {
    return {};
  }
  return std::move(walk.places);
}

}  // namespace snug::formats
