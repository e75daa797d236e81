// Two stages: lines are read one by one, with operands and bases as names; then names are resolved,
// since a tensor may be declared after its use.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "program/text/text.h"
#include "program/text/text_attributes.h"
#include "program/text/text_cursor.h"
#include "program/text/text_fold.h"
#include "program/text/text_statement.h"

namespace snug::program {
namespace {

constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();
constexpr int64_t kMinInt32 = std::numeric_limits<int32_t>::min();

class LineParser {
 public:
  LineParser(const SourceLine& line, const std::string& file)
      : line_(line), file_(file), cursor_(line, file) {}

  std::string program_name() {
    if (!cursor_.accept_word("program")) cursor_.fail_expected("'program NAME' first");
    std::string name = cursor_.word("the program's name");
    expect_end();
    return name;
  }

  // If the line declares an input, reads the whole declaration; otherwise returns nothing.
  std::optional<Declaration> input() {
    if (!cursor_.accept_word("tensor")) return std::nullopt;
    Declaration declaration = declare();
    declaration.inherits_layer = false;
    expect_end();
    return declaration;
  }

  // Reads an operation; the tensors that it declares are appended to `declarations`.
  OperationText statement(std::vector<Declaration>& declarations) {
    OperationText statement;
    const size_t first = declarations.size();
    if (has_results()) {
      do {
        statement.writes.push_back(result(declarations));
      } while (cursor_.accept(','));
      cursor_.expect('=', "after the results");
    }
    call(statement);
    while (!cursor_.at_end()) clause(statement, declarations);
    for (size_t i = first; i < declarations.size(); ++i)
      if (declarations[i].inherits_layer) declarations[i].tensor.layer = statement.operation.layer;
    return statement;
  }

 private:
  // Whether the line has results, which end with a '=' outside of lists and quoted names.
  bool has_results() const {
    bool quoted = false;
    int depth = 0;
    for (size_t i = 0; i < line_.text.size(); ++i) {
      const char c = line_.text[i];
      if (c == '"') quoted = !quoted;
      if (c == '\\' && quoted) ++i;
      if (quoted) continue;
      if (c == '(') ++depth;
      if (c == ')') --depth;
      if (c == '=' && depth == 0) return true;
    }
    return false;
  }

  NameInText reference(std::string_view expected) {
    const size_t begin = cursor_.position();
    NameInText reference;
    reference.name = cursor_.word(expected);
    reference.place = {file_, line_.line, line_.column_of(begin)};
    return reference;
  }

  std::vector<NameInText> references() {
    std::vector<NameInText> list;
    cursor_.expect('(', "to open a list of tensors");
    if (cursor_.accept(')')) return list;
    do {
      list.push_back(operand());
    } while (cursor_.accept(','));
    cursor_.expect(')', "or ',' after a tensor's name");
    return list;
  }

  // Reads NAME or OPERAND=NAME.
  NameInText operand() {
    NameInText first = reference("a tensor's name");
    if (!cursor_.accept('=')) return first;
    NameInText named = reference("a tensor's name after '='");
    named.place = first.place;
    named.operand = std::move(first.name);
    return named;
  }

  NameInText result(std::vector<Declaration>& declarations) {
    std::optional<TensorId> id;
    if (cursor_.peek('%')) id = tensor_id();
    const NameInText self = reference("a result's name");
    if (id || cursor_.peek('(')) {
      declarations.push_back(declare_as(self, id));
      while (cursor_.at_word()) tensor_clause(declarations.back());
    }
    return self;
  }

  // Reads a workspace: a declaration like a result's, but the words after it belong to the
  // operation.
  NameInText workspace(std::vector<Declaration>& declarations) {
    std::optional<TensorId> id;
    if (cursor_.peek('%')) id = tensor_id();
    const NameInText self = reference("the workspace's name");
    if (id || cursor_.peek('(')) {
      declarations.push_back(declare_as(self, id));
      declarations.back().tensor.role = Role::workspace;
    }
    return self;
  }

  TensorId tensor_id() {
    cursor_.accept('%');
    return static_cast<TensorId>(cursor_.integer("a tensor's id", 0, kMaxInt32));
  }

  Declaration declare() {
    std::optional<TensorId> id;
    if (cursor_.peek('%')) id = tensor_id();
    Declaration declaration = declare_as(reference("a tensor's name"), id);
    while (cursor_.at_word()) tensor_clause(declaration);
    return declaration;
  }

  // Reads a name's shape and element type.
  Declaration declare_as(const NameInText& self, std::optional<TensorId> id) {
    Declaration declaration;
    declaration.self = self;
    declaration.id = id;
    declaration.tensor.name = self.name;
    for (const int64_t dim : integers("dimension", Shape::kMaxRank))
      declaration.tensor.shape.append(dim);
    const size_t begin = cursor_.position();
    const std::string type = cursor_.word("an element type such as bf16");
    const auto dtype = base::from_word<DType>(type);
    if (!dtype) cursor_.fail_at(begin, fmt::format("unknown element type '{}'", type));
    declaration.tensor.dtype = *dtype;
    return declaration;
  }

  // Reads "(2, 3)" with at most `most` numbers.
  std::vector<int64_t> integers(std::string_view what, size_t most) {
    std::vector<int64_t> values;
    cursor_.expect('(', "and the dimensions");
    if (cursor_.accept(')')) return values;
    do {
      if (values.size() == most) cursor_.fail(fmt::format("more than {} dimensions", most));
      values.push_back(
          cursor_.integer(fmt::format("a {}", what), 0, std::numeric_limits<int64_t>::max()));
    } while (cursor_.accept(','));
    cursor_.expect(')', "or ',' after a number");
    return values;
  }

  void tensor_clause(Declaration& declaration) {
    const size_t begin = cursor_.position();
    const std::string word = cursor_.word("a role, space, lifetime or stream");
    Tensor& tensor = declaration.tensor;
    if (word == "view") {
      view_clause(declaration);
    } else if (word == "part") {
      part_clause(tensor);
    } else if (word == "constant") {
      tensor.constant = true;
    } else if (word == "layer") {
      tensor.layer = layer();
      declaration.inherits_layer = false;
    } else if (const auto role = base::from_word<Role>(word)) {
      tensor.role = *role;
    } else if (const auto space = base::from_word<Space>(word)) {
      tensor.space = *space;
    } else if (const auto lifetime = base::from_word<Lifetime>(word)) {
      tensor.lifetime = *lifetime;
    } else if (const auto stream = base::from_word<base::TokenStream>(word)) {
      tensor.stream = *stream;
    } else {
      cursor_.fail_at(begin, fmt::format("'{}' is no role, space, lifetime or stream", word));
    }
  }

  void part_clause(Tensor& tensor) {
    if (!cursor_.accept_word("of")) cursor_.fail_expected("'of' and the shape of it all");
    tensor.whole.emplace();
    for (const int64_t dim : integers("dimension", Shape::kMaxRank)) tensor.whole->append(dim);
    if (cursor_.accept_word("by")) tensor.rank_step = step();
  }

  int64_t step() {
    return cursor_.integer("elements from one rank to the next", 0,
                           std::numeric_limits<int64_t>::max());
  }

  void view_clause(Declaration& declaration) {
    if (!cursor_.accept_word("of")) cursor_.fail_expected("'of' and the base of the view");
    declaration.base = reference("the base of the view");
    View& view = declaration.tensor.view;
    view.strides = dense_strides(declaration.tensor.shape);
    constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
    constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();
    if (cursor_.accept_word("at"))
      view.offset = cursor_.integer("the view's offset", kLowest, kHighest);
    if (cursor_.accept_word("by")) view.rank_step = step();
    const size_t begin = cursor_.position();
    if (!cursor_.accept_word("strides")) return;
    const auto rank = static_cast<size_t>(declaration.tensor.shape.rank());
    const std::vector<int64_t> strides = integers("stride", Shape::kMaxRank);
    if (strides.size() != rank)
      cursor_.fail_at(begin, fmt::format("{} strides for {} dimensions", strides.size(), rank));
    std::copy(strides.begin(), strides.end(), view.strides.begin());
  }

  int32_t layer() {
    if (cursor_.accept_word("none")) return -1;
    return static_cast<int32_t>(cursor_.integer("a layer", kMinInt32, kMaxInt32));
  }

  void call(OperationText& statement) {
    const size_t begin = cursor_.position();
    const std::string name = cursor_.word("a kind of operation");
    const auto kind = base::from_word<Kind>(name);
    if (!kind) cursor_.fail_at(begin, fmt::format("unknown kind of operation '{}'", name));
    statement.operation.attributes = default_attributes(*kind);
    statement.reads = references();
  }

  void clause(OperationText& statement, std::vector<Declaration>& declarations) {
    if (cursor_.accept('{')) return parse_attributes(cursor_, statement.operation.attributes);
    const size_t begin = cursor_.position();
    const std::string word = cursor_.word(
        "attributes, updates, workspace, phase, channel, joined, launches, on_host or layer");
    if (word == "updates") {
      statement.updates = references();
    } else if (word == "workspace") {
      statement.workspace = workspace(declarations);
    } else if (word == "channel") {
      statement.operation.channel = channel();
    } else if (word == "joined") {
      statement.operation.joined = true;
    } else if (word == "launches") {
      statement.operation.launches =
          static_cast<int32_t>(cursor_.integer("a number of launches", 0, kMaxInt32));
    } else if (word == "on_host") {
      statement.operation.on_host = true;
    } else if (word == "layer") {
      statement.operation.layer = layer();
    } else if (const auto phase = base::from_word<Phase>(word)) {
      statement.operation.phase = *phase;
    } else {
      constexpr const char* kOthers =
          "updates, workspace, channel, joined, launches, on_host and layer";
      cursor_.fail_at(begin, fmt::format("'{}' is no phase, and none of {}", word, kOthers));
    }
  }

  Channel channel() {
    const size_t begin = cursor_.position();
    const std::string name = cursor_.word("a channel");
    const auto channel = base::from_word<Channel>(name);
    if (!channel) cursor_.fail_at(begin, fmt::format("'{}' is no channel", name));
    return *channel;
  }

  void expect_end() {
    if (!cursor_.at_end()) cursor_.fail_expected("the end of the line");
  }

  const SourceLine& line_;
  const std::string& file_;
  LineCursor cursor_;
};

// Gives every declaration its id: the written one, or one more than that of the declaration before.
std::vector<TensorId> assign_ids(const std::vector<Declaration>& declarations) {
  std::vector<TensorId> ids;
  std::vector<bool> taken(declarations.size(), false);
  int64_t next = 0;
  for (const Declaration& declaration : declarations) {
    const int64_t id = declaration.id ? *declaration.id : next;
    const auto count = static_cast<int64_t>(declarations.size());
    if (id >= count)
      throw base::UserError(fmt::format("tensor '{}' has id {}, but there are {} tensors",
                                        declaration.self.name, id, count),
                            declaration.self.place);
    if (taken[static_cast<size_t>(id)])
      throw base::UserError(
          fmt::format("tensor '{}' has id {}, which is taken", declaration.self.name, id),
          declaration.self.place);
    taken[static_cast<size_t>(id)] = true;
    ids.push_back(static_cast<TensorId>(id));
    next = id + 1;
  }
  return ids;
}

// Resolves names to ids and assembles the program.
class Linker {
 public:
  explicit Linker(const std::vector<Declaration>& declarations) : ids_(assign_ids(declarations)) {
    for (size_t i = 0; i < declarations.size(); ++i) {
      const NameInText& self = declarations[i].self;
      if (!by_name_.emplace(self.name, ids_[i]).second)
        throw base::UserError(fmt::format("tensor '{}' is declared twice", self.name), self.place);
    }
    program_.tensors.resize(declarations.size());
    for (size_t i = 0; i < declarations.size(); ++i) {
      Tensor& tensor = program_.tensor(ids_[i]);
      tensor = declarations[i].tensor;
      if (declarations[i].base) tensor.view.base = find(*declarations[i].base);
    }
  }

  Program link(std::string name, const std::vector<OperationText>& statements) {
    program_.name = std::move(name);
    for (const OperationText& statement : statements) {
      Operation operation = statement.operation;
      operation.reads = find_all(statement.reads);
      operation.writes = find_all(statement.writes);
      operation.updates = find_all(statement.updates);
      if (statement.workspace) operation.workspace = find(*statement.workspace);
      check_names(operation, Access::read, statement.reads);
      check_names(operation, Access::update, statement.updates);
      program_.operations.push_back(std::move(operation));
    }
    return std::move(program_);
  }

 private:
  TensorId find(const NameInText& reference) const {
    const auto found = by_name_.find(reference.name);
    if (found == by_name_.end())
      throw base::UserError(fmt::format("tensor '{}' is not declared", reference.name),
                            reference.place);
    return found->second;
  }

  // Checks that operands with names are in the positions that their kind gives these names.
  static void check_names(const Operation& operation, Access access,
                          const std::vector<NameInText>& references) {
    const std::vector<std::string_view> names = operand_names(operation, access);
    for (size_t i = 0; i < references.size(); ++i) {
      const std::string& written = references[i].operand;
      if (written.empty() || (i < names.size() && names[i] == written)) continue;
      throw base::UserError(
          fmt::format("'{}' is not operand {} of {} with these attributes, which "
                      "takes ({})",
                      written, i + 1, name_of(operation.kind()), fmt::join(names, ", ")),
          references[i].place);
    }
  }

  std::vector<TensorId> find_all(const std::vector<NameInText>& references) const {
    std::vector<TensorId> ids;
    ids.reserve(references.size());
    for (const NameInText& reference : references) ids.push_back(find(reference));
    return ids;
  }

  std::vector<TensorId> ids_;
  std::unordered_map<std::string, TensorId> by_name_;
  Program program_;
};

}  // namespace

Program parse_text(std::string_view text, const std::string& file) {
  const std::vector<SourceLine> lines = unfold_layers(text, file);
  if (lines.empty()) throw base::UserError("expected 'program NAME', found no line", {file, 1, 1});
  std::string name = LineParser(lines[0], file).program_name();
  std::vector<Declaration> declarations;
  std::vector<OperationText> statements;
  for (size_t i = 1; i < lines.size(); ++i) {
    LineParser parser(lines[i], file);
    if (auto declaration = parser.input())
      declarations.push_back(std::move(*declaration));
    else
      statements.push_back(parser.statement(declarations));
  }
  return Linker(declarations).link(std::move(name), statements);
}

}  // namespace snug::program
