#include "formats/foreign/tool_entries.h"

#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <utility>

namespace snug::formats {
namespace {

class EntryWalk {
 public:
  explicit EntryWalk(ToolEntry& entry) : entry_(entry) {}

  void add(const YAML::Node& node, const std::string& name) {
    if (node.IsMap()) {
      for (const auto& each : node) {
        const std::string key = each.first.IsScalar() ? each.first.Scalar() : "";
        if (key.empty()) entry_.fail("has a key that is no word");
        add(each.second, name.empty() ? key : name + "." + key);
      }
      return;
    }
    Written written{name, {}, node.IsSequence(), place_of(name)};
    if (node.IsScalar()) written.items.push_back(node.Scalar());
    if (node.IsSequence()) {
      for (const YAML::Node& item : node) {
        if (!item.IsScalar())
          throw base::UserError("holds a list or map where a list of words is expected",
                                written.where);
        written.items.push_back(item.Scalar());
      }
    }
    entry_.keys.push_back(std::move(written));
  }

 private:
  // Entries are kept as text, so their keys have their path for a place, after that of the list.
  base::Location place_of(const std::string& name) const {
    return {base::to_string(entry_.where) + entry_.place + "." + name, 0, 0};
  }

  ToolEntry& entry_;
};

std::string on_one_line(const YAML::Node& node) {
  YAML::Emitter emitter;
  emitter.SetMapFormat(YAML::Flow);
  emitter.SetSeqFormat(YAML::Flow);
  emitter << node;
  return emitter.c_str();
}

YAML::Node node_in(const std::string& item, const base::Location& where) {
  if (!item.starts_with('{')) return YAML::Node(item);
  try {
    return YAML::Load(item);
  } catch (const YAML::Exception& error) {
    throw base::UserError("not valid YAML: " + error.msg, where);
  }
}

}  // namespace

const Written* ToolEntry::find(std::string_view name) const {
  const auto found = std::ranges::find(keys, name, &Written::name);
  return found == keys.end() || found->items.empty() ? nullptr : &*found;
}

std::string ToolEntry::text(std::string_view name) const {
  const Written* written = find(name);
  return written == nullptr ? "" : one_text(*written);
}

void ToolEntry::fail(const std::string& problem) const {
  throw base::UserError(problem, {base::to_string(where) + place, 0, 0});
}

std::vector<std::string> tool_items(const YAML::Node& value) {
  std::vector<std::string> items;
  const auto add = [&](const YAML::Node& item) {
    if (item.IsSequence()) {
      items.push_back(fmt::format("{{path: {}}}", on_one_line(item)));
    } else {
      items.push_back(item.IsScalar() ? item.Scalar() : on_one_line(item));
    }
  };
  if (value.IsSequence())
    for (const YAML::Node& item : value) add(item);
  else if (!value.IsNull())
    add(value);
  return items;
}

std::vector<ToolEntry> tool_entries(const Written& list) {
  std::vector<ToolEntry> entries;
  for (const std::string& item : list.items) {
    ToolEntry entry{list.shown(), list.where, {}};
    if (list.is_list) entry.place += fmt::format("[{}]", entries.size());
    const YAML::Node node = node_in(item, list.where);
    EntryWalk(entry).add(node, node.IsMap() ? "" : "path");
    entries.push_back(std::move(entry));
  }
  return entries;
}

const std::string& one_text(const Written& written) {
  if (written.items.size() == 1) return written.items.front();
  throw base::UserError(
      fmt::format("{}is the list [{}]; expected one value",
                  written.where.line > 0 ? fmt::format("'{}' ", written.name) : "",
                  fmt::join(written.items, ", ")),
      written.where);
}

std::vector<Written> take_below(ToolEntry& entry, std::string_view prefix) {
  std::vector<Written> taken;
  std::erase_if(entry.keys, [&](Written& written) {
    if (!written.name.starts_with(prefix)) return false;
    taken.push_back(std::move(written));
    taken.back().name.erase(0, prefix.size());
    return true;
  });
  return taken;
}

}  // namespace snug::formats
