#include "methods/objective.h"

#include <string>
#include <utility>

#include "base/error.h"
#include "base/words.h"
#include "program/builder.h"
#include "program/kinds.h"
#include "program/tensor_names.h"

namespace snug::methods {
namespace {

using program::Program;

Program as_it_is(const Program& forward, const ObjectiveOptions&) { return forward; }

}  // namespace

const Objective kNextToken{.kind = ObjectiveKind::next_token, .finish = as_it_is};

const Objective& objective_of(ObjectiveKind kind) {
  for (const Objective* row : {&kNextToken, &kDpo, &kOrpo})
    if (row->kind == kind) return *row;
  SNUG_CHECK(false, "no objective {}", base::word_of(kind));
  std::abort();
}

TokenLosses token_losses(const Program& forward) {
  using Loss = program::LinearCrossEntropy;
  TokenLosses end{.program = forward};
  const program::Operation& last = end.program.operations.back();
  SNUG_CHECK(std::holds_alternative<Loss>(last.attributes),
             "{} does not end in the losses of tokens", forward.name);
  end.losses = id_of(last, Loss::kLosses);
  end.bounds = end.program.find(program::kQueryBoundsName);
  end.type = end.program.tensor(end.losses).dtype;
  end.segments = end.program.tensor(end.bounds).shape[0];
  program::Tensor& unread = end.program.tensor(id_of(last, Loss::kLoss));
  unread.name = "token_loss";
  unread.lifetime = program::Lifetime::program;
  end.program.tensor(end.losses).lifetime = program::Lifetime::program;
  return end;
}

Program log_probabilities(const Program& forward, std::string_view result) {
  TokenLosses end = token_losses(forward);
  program::Builder builder(std::move(end.program));
  program::Tensor sums;
  sums.name = result;
  sums.shape = {end.segments};
  sums.dtype = end.type;
  sums.role = program::Role::scalar;
  sums.lifetime = program::Lifetime::step;
  builder.emit(program::SumSegments{.scale = -1.0F}, {end.losses, end.bounds},
               {builder.add(std::move(sums))});
  return builder.take();
}

}  // namespace snug::methods
