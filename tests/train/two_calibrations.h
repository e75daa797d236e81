// Calibrations that are made up, so that plans by them are the same on every machine.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/planned_data.h"
#include "cli/request.h"
#include "plan/job/assembly.h"
#include "plan/time/calibration_file.h"
#include "program/work/rate_key.h"
#include "tiny_job.h"

namespace snug::train {

// One sample for each operation of these jobs, which takes as long as `seconds_of` says of its
// work. `jobs`: words as after `snug plan`, with the first one's target as the machine.
inline plan::Calibration made_up_calibration(const std::vector<std::vector<std::string>>& jobs,
                                             const std::function<double(double)>& seconds_of) {
  plan::Calibration calibration;
  std::map<std::pair<std::string, std::vector<double>>, plan::RateSample> samples;
  for (const std::vector<std::string>& words : jobs) {
    const cli::PlanningSession session(cli::make_request(words, false));
    calibration.machine = plan::identify_machine(session.target());
    const plan::PlannedTraining planned = plan::assemble_training(session.inputs());
    for (const program::Program& program : planned.job.programs)
      for (const program::Operation& operation : program.operations)
        for (const auto& [key, cost] :
             program::priced_shares({program, operation}, planned.expected))
          if (key.work > 0)
            samples[{key.form.name(), key.shape}] = {
                key.form.name(),      key.shape,     key.unit, key.work,
                seconds_of(key.work), key.multiplies};
  }
  for (auto& [name, sample] : samples) calibration.samples.push_back(sample);
  return calibration;
}

// Folders a and b of the job's folder with a calibration each, rates.json. By the times of `a` all
// operations take alike, so that few of them are fastest; by those of `b` large ones take out of
// proportion long. `variants`: words of each job that is compared by them.
inline void write_two_calibrations(const TinyJob& job, const std::vector<std::string>& variants) {
  std::vector<std::vector<std::string>> jobs;
  for (const std::string& variant : variants) {
    std::vector<std::string> words = job.words("planned", variant + " devices=2");
    words.erase(words.begin());  // the verb
    jobs.push_back(std::move(words));
  }
  const auto write = [&](const char* file, const std::function<double(double)>& seconds_of) {
    job.folder().write(file, plan::to_json(made_up_calibration(jobs, seconds_of)));
  };
  write("a/rates.json", [](double /*work*/) { return 1e-3; });
  write("b/rates.json", [](double work) { return 1e-12 * work * work; });
}

}  // namespace snug::train
