#include "program/work/rate_form.h"

#include <fmt/format.h>

#include <algorithm>

namespace snug::program {
namespace {

void append_types(const std::vector<base::DType>& types, std::string_view before,
                  std::string& name) {
  for (const base::DType type : types) {
    name += before;
    name += base::name_of(type);
    before = " ";
  }
}

}  // namespace

std::string RateForm::name() const {
  std::string name(kind);
  const auto append_if = [&](bool has, std::string_view words) {
    if (has) name += words;
  };
  if (transposes) {
    name += transposes->a ? " t" : " n";
    name += transposes->b ? " t" : " n";
  }
  append_types(reads, " ", name);
  append_types(writes, " > ", name);
  append_types(updates, " += ", name);
  if (ranks > 0) name += fmt::format(" {} ranks", ranks);
  if (nodes > 1) name += fmt::format(" on {} nodes", nodes);
  append_if(between_hosts, " between hosts");
  append_if(stochastic, " stochastic");
  append_if(cached, " cached");
  append_if(by_library, " by library");
  append_if(tensor_cores, " on tensor cores");
  append_if(online, " online");
  if (algorithm != ProductAlgorithm::library)
    name += fmt::format(" by {}", base::word_of(algorithm));
  append_if(adjusted, " adjusted");
  append_if(quantized, " quantized");
  append_if(copied, " copied");
  for (const std::string& decision : decisions) name += " " + decision;
  append_if(few, " few");
  append_if(on_host, " on host");
  return name;
}

ProductAlgorithm rated_as(ProductAlgorithm algorithm) {
  const bool is_as_library =
      algorithm == ProductAlgorithm::loops || algorithm == ProductAlgorithm::timed;
  return is_as_library ? ProductAlgorithm::library : algorithm;
}

RateForm without_decisions(RateForm form) {
  form.decisions.clear();
  return form;
}

RateForm plain(RateForm form) {
  form.decisions.clear();
  form.adjusted = false;
  form.quantized = false;
  form.copied = false;
  return form;
}

RateForm with_bf16_for_f16(RateForm form) {
  for (std::vector<base::DType>* types : {&form.reads, &form.writes, &form.updates})
    std::ranges::replace(*types, base::DType::f16, base::DType::bf16);
  return form;
}

RateForm between_devices(RateForm form) {
  form.between_hosts = false;
  return form;
}

}  // namespace snug::program
