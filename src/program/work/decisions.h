// The attributes of an operation that say how it is done, apart from those that say what it does.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program/ir/operation.h"
#include "program/ir/program.h"
#include "program/kinds/field.h"
#include "program/kinds/product/product_algorithm.h"
#include "program/work/work_list.h"

namespace snug::program {

// Name and value of each part of what the kind lists as decisions, in the order of its list.
std::vector<std::pair<std::string_view, int64_t>> decisions_of(const Operation& operation);

// The attributes without what was decided, as they are before a target is asked.
Attributes undecided(const Attributes& attributes);

// Such a value as people read it: the word of an enumeration, else the number.
std::string decision_text(Kind kind, std::string_view name, int64_t value);

// Such a value, where the decision is the algorithm of a product; else nothing.
std::optional<ProductAlgorithm> product_algorithm(Kind kind, std::string_view name, int64_t value);

// The value that asks for nothing: what the decision is before a target is asked.
int64_t undecided_value(Kind kind, std::string_view name);

// How it shows in the name of a rate key.
Priced priced_as(Kind kind, std::string_view name);

// Why the pieces of a trace are not those that are planned, as the end of a sentence; empty where
// they are.
std::string pieces_error(const WorkList& planned, std::span<const int64_t> pieces);

// Whether pieces without an error say themselves what was done by the decision, or that nothing
// was: a trace then need not note it.
bool is_in_pieces(const Operation& operation, const WorkList& planned, std::string_view name,
                  std::span<const int64_t> pieces);

// Whether such a value states a class of ways, one of which a backend chooses before the first step
// (ProductAlgorithm::timed), and whether `way` is of the class.
bool is_class(Kind kind, std::string_view name, int64_t value);
bool is_of_class(Kind kind, std::string_view name, int64_t value, int64_t way);

}  // namespace snug::program
