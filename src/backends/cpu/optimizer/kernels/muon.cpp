#include "backends/cpu/optimizer/kernels/muon.h"

#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/lanes.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

template <typename G, typename D>
void advance_muon(const MuonMomentumNumbers& numbers_of_all, const MuonMomentumRun& run) {
  const MuonMomentumNumbers numbers = numbers_of_all;  // a copy, which the momentum cannot alias
  const G* gradient = static_cast<const G*>(run.gradient);
  D* direction = static_cast<D*>(run.direction);
  float* momentum = run.momentum;
  for_each_lanes(run.n, [&](int64_t i, auto part) {
    const Float16Lanes g = load(gradient + i, part) * numbers.factor;
    const Float16Lanes old = load(momentum + i, part);
    const Float16Lanes next = old + (g - old) * numbers.share;
    store(momentum + i, next, part);
    store(direction + i, next + (g - next) * numbers.gradient_share, part);
  });
}

template <typename D, typename W>
void step_muon(const MuonStepNumbers& numbers_of_all, const MuonStepRun& run) {
  const MuonStepNumbers numbers = numbers_of_all;
  const D* direction = static_cast<const D*>(run.direction);
  W* weight = static_cast<W*>(run.weight);
  float* master = run.master;
  for_each_lanes(run.n, [&](int64_t i, auto part) {
    const Float16Lanes next =
        load(master + i, part) * numbers.keep - load(direction + i, part) * numbers.rate;
    store(master + i, next, part);
    if constexpr (sizeof(W) != sizeof(float)) store(weight + i, next, part);
  });
}

}  // namespace

extern const MuonKernels kMuonKernels;
const MuonKernels kMuonKernels = {
    .advance = SNUG_BY_TWO_ELEMENTS(advance_muon),
    .step = SNUG_BY_TWO_ELEMENTS(step_muon),
};

}  // namespace snug::backends::cpu::SNUG_ISA
