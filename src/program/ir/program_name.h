// The programs of a job by name. docs/architecture.md explains what each of them does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
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
  average,
  gather,
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
                                   {ProgramName::save_state, "save_state"},
                                   {ProgramName::average, "average"},
                                   {ProgramName::gather, "gather"}});
}

constexpr std::string_view name_of(ProgramName name) { return base::word_of(name); }

// Identifies a program of a job by its name and, where a job has several of the same name, by the
// most rows that it appends: `decode` and `prefill` are the largest ones, `decode.8` appends a
// token each to at most 8 sequences, `prefill.128` at most 128 tokens.
struct ProgramKey {
  ProgramName name{};
  int32_t size = 0;  // 0: of the largest one, or of the only one

  constexpr ProgramKey(ProgramName of, int32_t of_size = 0)  // NOLINT: most have no number
      : name(of), size(of_size) {}
  bool operator==(const ProgramKey&) const = default;
};
std::string name_of(const ProgramKey& key);
// Nothing if the text names no program of a job.
std::optional<ProgramKey> program_key(std::string_view name);

// A stage is an activity of a job that alternates with others. Programs of one stage share their
// tensors of lifetime step. Stages use the same bytes in turn, so a stage's tensors of lifetime
// step are lost when another stage begins.
enum class Stage : uint8_t { training, generation };
inline constexpr size_t kStageCount = 2;

// Nothing for a program without such tensors, which is laid out in the bytes of the job's first
// stage.
constexpr std::optional<Stage> stage_of(ProgramName name) {
  switch (name) {
    case ProgramName::reference:
    case ProgramName::micro_first:
    case ProgramName::micro_next:
    case ProgramName::micro_last:
    case ProgramName::update:
    case ProgramName::evaluate:
      return Stage::training;
    case ProgramName::prefill:
    case ProgramName::decode:
    case ProgramName::gather:
      return Stage::generation;
    case ProgramName::load:
    case ProgramName::initialise:
    case ProgramName::prepare:
    case ProgramName::load_adapter:
    case ProgramName::restore:
    case ProgramName::save:
    case ProgramName::save_state:
    case ProgramName::average:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace snug::program
