#include "text/source/parquet/schema.h"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <utility>

#include "base/shown_text.h"
#include "text/source/parquet/compact.h"

namespace snug::text::parquet {
namespace {

constexpr int kMaxSchemaDepth = 32;

struct Levels {
  int definition = 0;
  int repetition = 0;
};

void require_names_once(const Node& object) {
  std::set<std::string_view> names;
  for (const Node& child : object.children)
    if (!names.insert(child.name).second)
      throw Damaged(fmt::format("two columns are called '{}'; rename one of them",
                                base::shown_text(child.name)));
}

class SchemaReader {
 public:
  explicit SchemaReader(const std::vector<SchemaElement>& elements) : elements_(elements) {}

  Schema read() {
    Schema schema;
    schema.root.sort = Node::Sort::object;
    const SchemaElement& root = next();
    for (int32_t i = 0; i < root.children; ++i) schema.root.children.push_back(read_node({}, 1));
    if (at_ != elements_.size()) throw Damaged("its schema is no tree");
    schema.root.end_leaf = leaves_.size();
    require_names_once(schema.root);
    schema.leaves = std::move(leaves_);
    if (schema.leaves.empty()) throw Damaged("it has no columns");
    return schema;
  }

 private:
  const SchemaElement& next() {
    if (at_ == elements_.size()) throw Damaged("its schema is no tree");
    return elements_[at_++];
  }
  const SchemaElement& peek() const {
    if (at_ == elements_.size()) throw Damaged("its schema is no tree");
    return elements_[at_];
  }

  // A field that repeats without a list around it is a list of what it is.
  Node read_node(Levels levels, int depth) {
    if (depth > kMaxSchemaDepth) throw Damaged("its schema nests too deeply");
    const SchemaElement& element = next();
    if (element.repetition != Repetition::repeated) return read_single(element, levels, depth);
    Node list = list_of(element.name, levels);
    list.children.push_back(
        read_single(element, {levels.definition + 1, levels.repetition + 1}, depth));
    list.end_leaf = leaves_.size();
    return list;
  }

  Node list_of(const std::string& name, const Levels& levels) const {
    Node list;
    list.sort = Node::Sort::list;
    list.name = name;
    list.definition = levels.definition;
    list.entries_definition = levels.definition + 1;
    list.repetition = levels.repetition + 1;
    list.first_leaf = leaves_.size();
    return list;
  }

  Node read_single(const SchemaElement& element, Levels levels, int depth) {
    if (element.repetition == Repetition::optional) ++levels.definition;
    if (element.physical) return read_leaf(element, levels);
    if (element.children <= 0) throw Damaged("its schema has a group of nothing");
    const bool repeats = peek().repetition == Repetition::repeated && element.children == 1;
    if (element.meaning == Meaning::list && repeats) return read_list(element, levels, depth);
    if (element.meaning == Meaning::map && repeats && peek().children == 2)
      return read_map(element, levels, depth);
    Node object;
    object.sort = Node::Sort::object;
    object.name = element.name;
    object.definition = levels.definition;
    object.first_leaf = leaves_.size();
    for (int32_t i = 0; i < element.children; ++i)
      object.children.push_back(read_node(levels, depth + 1));
    object.end_leaf = leaves_.size();
    require_names_once(object);
    return object;
  }

  Node read_leaf(const SchemaElement& element, const Levels& levels) {
    if (leaves_.size() == kMaxLeaves)
      throw Damaged(fmt::format("it has more than {} columns, which are not read", kMaxLeaves));
    Node leaf;
    leaf.name = element.name;
    leaf.definition = levels.definition;
    leaf.first_leaf = leaves_.size();
    leaf.end_leaf = leaf.first_leaf + 1;
    leaves_.push_back({element, levels.definition, levels.repetition});
    return leaf;
  }

  // Within the list stands a group that repeats, whose one child is the item. Older writers let the
  // items themselves repeat: a value, a group of several fields, or of the names that the format
  // lists.
  Node read_list(const SchemaElement& element, const Levels& levels, int depth) {
    Node list = list_of(element.name, levels);
    const Levels inner{levels.definition + 1, levels.repetition + 1};
    const SchemaElement repeated = next();
    const bool is_item = repeated.physical.has_value() || repeated.children != 1 ||
                         repeated.name == "array" || repeated.name == element.name + "_tuple";
    list.children.push_back(is_item ? read_single(repeated, inner, depth + 1)
                                    : read_node(inner, depth + 1));
    list.end_leaf = leaves_.size();
    return list;
  }

  Node read_map(const SchemaElement& element, const Levels& levels, int depth) {
    Node map = list_of(element.name, levels);
    map.sort = Node::Sort::map;
    const Levels inner{levels.definition + 1, levels.repetition + 1};
    next();  // the group that repeats
    for (int i = 0; i < 2; ++i) map.children.push_back(read_node(inner, depth + 1));
    map.end_leaf = leaves_.size();
    const bool has_text_keys = map.children[0].sort == Node::Sort::value &&
                               leaves_[map.first_leaf].column.meaning == Meaning::text &&
                               leaves_[map.first_leaf].column.physical == Physical::byte_array;
    if (!has_text_keys)
      throw Damaged("the map '" + element.name + "' has keys that are no texts, which is not read");
    return map;
  }

  const std::vector<SchemaElement>& elements_;
  size_t at_ = 0;
  std::vector<Leaf> leaves_;
};

}  // namespace

Schema schema_of(const FileMetadata& file) { return SchemaReader(file.schema).read(); }

}  // namespace snug::text::parquet
