// What the runtime does itself, before the first step and between steps: weights come from files or
// are made, and files are written. Granularity is the tensor; the pieces in which it goes are the
// runtime's. Which file and which name a tensor has there is written in
// runtime/storage/file_names.h.
//
// Operations of these kinds run in list order on their channel: `storage` for what reads or writes
// files, else compute. The next may be read while the last is still being converted or quantised.
// `staging` is what values pass through: scratch, undefined before and after, handed out by the
// runtime, so that operations that name the same staging memory may be under way at once.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <tuple>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"
#include "program/kinds/transfer/fill_form.h"

namespace snug::program {

// writes: tensor, the values that a file holds under its name, in the tensor's element type.
// `file_width`: bytes of an element in the file; of a tensor that is made of several, of the
// widest.
struct Read {
  int64_t file_width = 2;
  bool operator==(const Read&) const = default;
  // Priced alike: the bytes that the file holds are the work.
  static constexpr auto kFields =
      std::tuple{Decision{"file_width", &Read::file_width, Priced::alike}};
  static constexpr auto kTensor = write<Read>(0, "tensor");
  static constexpr auto kStaging = update_all<Read>(1, "staging");
  static constexpr std::array kOperands{kTensor, kStaging};
  static constexpr Traits kTraits{.performer = Performer::runtime};
};

// writes: a stored weight (program/kinds/product/nf4.h). `stored`: the file holds it as it is;
// otherwise its values, which are rounded and quantised piece by piece. The absmax of a rank's part
// of a nested weight go to staging memory, in f32: to that rank's part of those of all ranks, from
// which encode_scales makes the rest once they are gathered.
struct ReadNf4 {
  bool nested = false;
  bool stored = false;
  int64_t file_width = 2;  // as of Read; 0 where it is stored
  bool operator==(const ReadNf4&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"nested", &ReadNf4::nested}, Field{"stored", &ReadNf4::stored},
                 Decision{"file_width", &ReadNf4::file_width, Priced::alike}};
  static constexpr auto kCodes = write<ReadNf4>(0, "codes");
  static constexpr auto kAbsmax = write<ReadNf4>(1, "absmax");
  static constexpr auto kNestedAbsmax = write<ReadNf4>(2, "nested_absmax", &ReadNf4::nested);
  static constexpr auto kNestedMap = write<ReadNf4>(3, "nested_map", &ReadNf4::nested);
  static constexpr auto kNestedOffset = write<ReadNf4>(4, "nested_offset", &ReadNf4::nested);
  static constexpr auto kStaging = update_all<ReadNf4>(5, "staging");
  static constexpr std::array kOperands{kCodes,     kAbsmax,       kNestedAbsmax,
                                        kNestedMap, kNestedOffset, kStaging};
  static constexpr Traits kTraits{.performer = Performer::runtime};
};

// writes: tensor (f32 or bf16), initial values: `scale` everywhere; normal(0, scale); or
// uniform(-scale, scale). Random ones depend on the seed, the tensor's name (a master's without its
// prefix) and the element (backends/formulas/random_values.h).
struct Fill {
  FillForm form = FillForm::constant;
  float scale = 0.0F;
  int64_t seed = 0;
  bool operator==(const Fill&) const = default;
  static constexpr auto kFields = std::tuple{
      Field{"form", &Fill::form}, Field{"scale", &Fill::scale}, Field{"seed", &Fill::seed}};
  static constexpr auto kTensor = write<Fill>(0, "tensor");
  static constexpr std::array kOperands{kTensor};
  static constexpr Traits kTraits{.performer = Performer::runtime};
};

// writes: a stored weight (program/kinds/product/nf4.h) of normal(0, scale) values in the compute
// type, quantised piece by piece; of a rank's part as read_nf4.
struct FillNf4 {
  bool nested = false;
  float scale = 0.0F;
  int64_t seed = 0;
  bool operator==(const FillNf4&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"nested", &FillNf4::nested}, Field{"scale", &FillNf4::scale},
                 Field{"seed", &FillNf4::seed}};
  static constexpr auto kCodes = write<FillNf4>(0, "codes");
  static constexpr auto kAbsmax = write<FillNf4>(1, "absmax");
  static constexpr auto kNestedAbsmax = write<FillNf4>(2, "nested_absmax", &FillNf4::nested);
  static constexpr auto kNestedMap = write<FillNf4>(3, "nested_map", &FillNf4::nested);
  static constexpr auto kNestedOffset = write<FillNf4>(4, "nested_offset", &FillNf4::nested);
  static constexpr auto kStaging = update_all<FillNf4>(5, "staging");
  static constexpr std::array kOperands{kCodes,     kAbsmax,       kNestedAbsmax,
                                        kNestedMap, kNestedOffset, kStaging};
  static constexpr Traits kTraits{.performer = Performer::runtime};
};

// Encodes the scales of a nested weight (program/kinds/product/nf4.h) in 8 bits, with the mean over
// all of them. reads: gathered (blocks) f32, in staging memory: the absmax of the whole weight,
// those of the ranks in their order, and padding. writes: the rank's part of the scales. The host
// does it; `staged`: it does not reach the device, and what it writes passes through `stage`.
struct EncodeScales {
  bool staged = false;
  bool operator==(const EncodeScales&) const = default;
  static constexpr auto kFields = std::tuple{Field{"staged", &EncodeScales::staged}};
  static constexpr auto kGathered = read<EncodeScales>(0, "gathered");
  static constexpr auto kAbsmax = write<EncodeScales>(1, "absmax");
  static constexpr auto kNestedAbsmax = write<EncodeScales>(2, "nested_absmax");
  static constexpr auto kNestedMap = write<EncodeScales>(3, "nested_map");
  static constexpr auto kNestedOffset = write<EncodeScales>(4, "nested_offset");
  static constexpr auto kStage = update<EncodeScales>(5, "stage", &EncodeScales::staged);
  static constexpr std::array kOperands{kGathered,  kAbsmax,       kNestedAbsmax,
                                        kNestedMap, kNestedOffset, kStage};
  static constexpr Traits kTraits{.performer = Performer::runtime};
};

// writes: tensor f32, what the host computes from config.json: rotary frequencies and ones. A model
// may have several such tables (models::computed_tensors); `table` is the index of the one meant.
struct Put {
  int64_t table = 0;
  bool operator==(const Put&) const = default;
  static constexpr auto kFields = std::tuple{Field{"table", &Put::table}};
  static constexpr auto kTensor = write<Put>(0, "tensor");
  static constexpr std::array kOperands{kTensor};
  static constexpr Traits kTraits{.performer = Performer::runtime};
};

// writes: tensor (1, 2) i32 = [0, rows): the bounds of one segment of all rows, whatever the batch
// (batch_bounds.h).
struct PutBounds {
  int64_t rows = 0;
  bool operator==(const PutBounds&) const = default;
  static constexpr auto kFields = std::tuple{Field{"rows", &PutBounds::rows}};
  static constexpr auto kTensor = write<PutBounds>(0, "tensor");
  static constexpr std::array kOperands{kTensor};
  static constexpr Traits kTraits{.performer = Performer::runtime};
};

// reads: tensor, which a file then holds under its name. `read_back`: the file is read again and
// compared before it counts.
struct Write {
  bool read_back = false;
  bool operator==(const Write&) const = default;
  // Priced alike: bytes that are read again are in the cost.
  static constexpr auto kFields =
      std::tuple{Decision{"read_back", &Write::read_back, Priced::alike}};
  static constexpr auto kTensor = read<Write>(0, "tensor");
  static constexpr auto kStaging = update_all<Write>(1, "staging");
  static constexpr std::array kOperands{kTensor, kStaging};
  static constexpr Traits kTraits{.performer = Performer::runtime};
};

}  // namespace snug::program
