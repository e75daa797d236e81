#include "program/work/rate_key.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "program/kinds/dispatch.h"
#include "program/kinds/functions.h"
#include "program/kinds/rate_names.h"

namespace snug::program {
namespace {

std::vector<base::DType> float_types(const Program& program, const std::vector<TensorId>& ids) {
  std::vector<base::DType> types;
  for (const TensorId id : ids)
    if (const base::DType type = program.tensor(id).dtype; base::is_float(type))
      types.push_back(type);
  return types;
}

}  // namespace

RateForm typed_form(const OperationView& view) {
  const Operation& operation = view.operation;
  return {.kind = name_of(operation.kind()),
          .reads = float_types(view.program, operation.reads),
          .writes = float_types(view.program, operation.writes),
          .updates = float_types(view.program, operation.updates)};
}

RateKey key_of_bytes(const OperationView& view, const Cost& work) {
  return {.form = typed_form(view), .shape = {std::max(1.0, work.bytes)}};
}

std::string line_of(const RateKey& key) {
  if (!key.is_product) return key.form.name();
  return fmt::format("{} ({:.0f})", key.form.name(), fmt::join(key.shape, ", "));
}

namespace {

// The word of a decision that the kind's own rule says nothing of. Among algorithms of products
// `main` is what the rule has: others that are alike have none.
template <typename Value>
std::string word_of(std::string_view decision, Value value, ProductAlgorithm main) {
  std::string what(decision.substr(0, decision.rfind("_algorithm")));
  std::ranges::replace(what, '_', ' ');
  if constexpr (std::is_same_v<Value, ProductAlgorithm>) {
    if (rated_as(value) == rated_as(main)) return {};
    return fmt::format("{} by {}", what, base::word_of(rated_as(value)));
  } else if constexpr (std::is_enum_v<Value>) {
    return fmt::format("{} {}", what, base::word_of(value));
  } else if constexpr (std::is_same_v<Value, bool>) {
    return what;
  } else {
    return fmt::format("{} {}", what, value);
  }
}

// The algorithm of a product that the kind's own rule has in the name; the library's where it has
// none.
template <typename Struct>
ProductAlgorithm main_algorithm(const Struct& attributes) {
  auto main = ProductAlgorithm::library;
  for_each_part<Struct>([&](const auto& part) {
    if constexpr (std::is_same_v<std::decay_t<decltype(part.of(attributes))>, ProductAlgorithm>)
      if (part.shown.priced == Priced::by_kind) main = part.of(attributes);
  });
  return main;
}

// The words of all decisions that have some and are not as they were before a target was asked.
template <typename Struct>
std::vector<std::string> words_of_decisions(const Struct& attributes) {
  std::vector<std::string> words;
  const Struct defaults;
  for_each_part<Struct>([&](const auto& part) {
    const auto value = part.of(attributes);
    if (part.shown.priced == Priced::by_word && value != part.of(defaults))
      words.push_back(word_of(part.name, value, main_algorithm(attributes)));
  });
  std::erase(words, "");
  return words;
}

// `work`: of the share.
RateKey key_of_share(const OperationView& view, const Share& share, const Cost& work) {
  RateKey key =
      dispatch<RateKey>(view.operation.attributes, [&]<typename Struct>(const Struct& attributes) {
        const auto rate_key = FunctionsOf<Struct>::kDefined.rate_key;
        return rate_key != nullptr ? rate_key(attributes, view, share.extent)
                                   : key_of_bytes(view, work);  // where a kind says nothing
      });
  key.form.decisions = dispatch<std::vector<std::string>>(
      view.operation.attributes,
      [](const auto& attributes) { return words_of_decisions(attributes); });
  key.form.few = share.is_few;
  key.multiplies = share.multiplies.value_or(key.multiplies);
  if (view.operation.channel == Channel::host &&
      traits_of(view.operation).copying != Copying::ends) {
    key.form.on_host = true;
    key.unit = Work::host_bytes;
  }
  key.is_product = traits_of(view.operation).category == Category::product;
  key.work = key.unit == Work::flops ? work.flops : work.bytes;
  return key;
}

// The cost of a share of an operation that several algorithms share. Each algorithm moves the bytes
// of its own rows.
Cost cost_of_share(const OperationView& view, const Share& share, const Cost& whole,
                   double all_rows) {
  Cost cost = whole;
  cost.flops =
      dispatch<double>(view.operation.attributes, [&]<typename Struct>(const Struct& attributes) {
        return FunctionsOf<Struct>::kDefined.cost(attributes, view, share.extent).flops;
      });
  const double part = share.extent.rows / all_rows;
  for (double* amount :
       {&cost.bytes, &cost.serial_bytes, &cost.link_bytes, &cost.launches, &cost.chunk_launches})
    *amount *= part;
  return cost;
}

}  // namespace

std::vector<PricedShare> priced_shares(const OperationView& view, const BatchBounds& bounds) {
  const WorkList work = work_of(view, bounds);
  const Cost whole = cost_of(view, work.extent);
  std::vector<Share> shares = work.shares;
  if (shares.empty()) shares.push_back({work.extent});
  if (shares.size() == 1) return {{key_of_share(view, shares.front(), whole), whole}};
  double rows = 0;
  for (const Share& share : shares) rows += share.extent.rows;
  std::vector<PricedShare> priced;
  for (const Share& share : shares) {
    const Cost part = cost_of_share(view, share, whole, rows);
    priced.push_back({key_of_share(view, share, part), part});
  }
  return priced;
}

RateKey rate_key(const OperationView& view, const BatchBounds& bounds) {
  const std::vector<PricedShare> shares = priced_shares(view, bounds);
  const auto most =
      std::ranges::max_element(shares, {}, [](const PricedShare& share) { return share.key.work; });
  RateKey key = most->key;
  key.work = 0;
  for (const PricedShare& share : shares) key.work += share.key.work;
  return key;
}

}  // namespace snug::program
