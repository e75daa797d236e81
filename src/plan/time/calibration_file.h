// The calibration file: what `snug bench calibrate` measured on a machine, as JSON that
// docs/calibration.md describes, and where plans look for it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "formats/recipe/recipe.h"
#include "plan/time/rates.h"
#include "program/ir/program.h"

namespace snug::plan {

// What times depend on. Equal machines have equal members, except for the date.
struct MachineIdentity {
  // "Intel(R) Xeon(R) Processor, family 6 model 207 stepping 2", or a card's name.
  std::string processor;
  std::string target;     // "cpu"
  std::string libraries;  // versions, instruction set and threads, as the target states them
  std::string date;       // of the measurement: "2026-01-31T12:00:00Z"
  bool same_machine(const MachineIdentity& other) const {
    return processor == other.processor && target == other.target && libraries == other.libraries;
  }
};

struct Calibration {
  MachineIdentity machine;
  std::vector<RateSample> samples;
  bool quick = false;  // measured in seconds before a first run, of few shapes
  bool busy = false;   // while other programs had the processors: a quick one counts for nothing
};

// The identity of this machine, as the target uses it.
MachineIdentity identify_machine(const program::Target& target);

std::string to_json(const Calibration& calibration);
// Throws UserError for what is not a calibration file of this format.
Calibration read_calibration(const std::filesystem::path& path);

// Throws UserError where there is something at `path` that is no calibration, of whatever format,
// and that one must not be written over.
void require_replaceable(const std::filesystem::path& path);

// Where `snug bench calibrate` writes and plans look: the recipe's `calibration`, else
// $XDG_CACHE_HOME/snug (or ~/.cache/snug)/calibration-CPU-HASH.json, the hash being of the
// machine's identity.
std::filesystem::path calibration_path(const formats::Recipe& recipe,
                                       const MachineIdentity& machine);

// Where a first run keeps what it measured: quick-calibration-CPU-HASH.json in the same folder.
std::filesystem::path quick_calibration_path(const MachineIdentity& machine);

// A calibration and the file that it was read from.
struct CalibrationFile {
  std::filesystem::path path;
  Calibration calibration;
};

// The recipe's calibration file, of whatever machine it is; without that key, that in the cache
// when it was measured on this machine with these libraries and threads, else that of a first run
// on it. Nothing when there is none. Throws UserError when the recipe names a file that cannot be
// read. A quick file that cannot be read, or that a busy machine was measured for, is as good as
// none.
std::optional<CalibrationFile> find_calibration_file(const formats::Recipe& recipe,
                                                     const program::Target& target);
// The rates of that file.
std::optional<Rates> find_calibration(const formats::Recipe& recipe, const program::Target& target);

// Removes the quick file of this machine where it was busy meanwhile; whether it did.
bool remove_if_busy(const std::filesystem::path& quick_file);

// Whether the sample is of what ranks do together, which only `snug bench links` measures.
bool is_of_links(const RateSample& sample);
// Takes samples with the names of `measured` out, and adds `measured`.
void replace_samples(Calibration& calibration, std::vector<RateSample> measured);

// The rates that a plan uses: calibrated where there are any, else of the device's data sheet, else
// assumed.
Rates rates_for(const formats::Recipe& recipe, const program::Target& target);

}  // namespace snug::plan
