// The programs of a job by name. What each does is said in docs/architecture.md.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/words.h"

namespace snug::program {

enum class ProgramName : uint8_t {
  load,
  initialise,
  prepare,
  reference,
  micro_first,
  micro_next,
  micro_last,
  update,
  evaluate,
  prefill,
  decode,
  load_adapter,
  restore,
  save,
  save_state,
};

constexpr auto words_of(ProgramName /*type*/) {
  return base::words<ProgramName>({{ProgramName::load, "load"},
                                   {ProgramName::initialise, "initialise"},
                                   {ProgramName::prepare, "prepare"},
                                   {ProgramName::reference, "reference"},
                                   {ProgramName::micro_first, "micro_first"},
                                   {ProgramName::micro_next, "micro_next"},
                                   {ProgramName::micro_last, "micro_last"},
                                   {ProgramName::update, "update"},
                                   {ProgramName::evaluate, "evaluate"},
                                   {ProgramName::prefill, "prefill"},
                                   {ProgramName::decode, "decode"},
                                   {ProgramName::load_adapter, "load_adapter"},
                                   {ProgramName::restore, "restore"},
                                   {ProgramName::save, "save"},
                                   {ProgramName::save_state, "save_state"}});
}

constexpr std::string_view name_of(ProgramName name) { return base::word_of(name); }

}  // namespace snug::program
