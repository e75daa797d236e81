#include "runtime/saving/save_tensors.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/finite.h"
#include "formats/folder/shared_model_writer.h"
#include "formats/folder/tensor_index.h"
#include "plan/job/storage_programs.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/transfer/storage.h"
#include "program/work/decisions.h"
#include "runtime/execution/trace_check.h"
#include "runtime/process/ranks.h"
#include "runtime/storage/check_finite.h"
#include "runtime/storage/host_window.h"
#include "runtime/storage/tensor_part.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;

static_assert(plan::kStageBytes % base::kChecksumPieceBytes == 0);

[[noreturn]] void fail_read_back(const formats::TensorIndex& index,
                                 const formats::IndexedTensor& tensor) {
  base::throw_user_error(
      "{}: tensor '{}' does not read back as it was written; nothing was kept of this save. The "
      "disk or its file system is faulty, write to another one",
      index.path_of(tensor).string(), tensor.info->name);
}

// `shape` is the expected shape in the file. `first` is the tensor's element at which the data
// begins.
struct InFile {
  std::vector<int64_t> shape;
  int64_t first = 0;
};

// Returns the number of bytes that were compared.
int64_t compare(const formats::TensorIndex& index, const SavedTensor& tensor, const InFile& in_file,
                std::byte* slot, HostWindow& window) {
  const formats::IndexedTensor& stored = index.at(tensor.name);
  const int64_t bytes = tensor.buffer.bytes();
  if (stored.info->dtype != tensor.buffer.dtype || stored.info->shape != in_file.shape)
    fail_read_back(index, stored);
  const int64_t begin = in_file.first * base::size_of(tensor.buffer.dtype);
  int64_t done = 0;
  while (done < bytes) {
    const int64_t piece = std::min(bytes - done, plan::kSlotBytes);
    index.read_range(stored, begin + done, piece, slot);
    const std::byte* const own = window.read(tensor.buffer.data + done, piece);
    if (std::memcmp(slot, own, static_cast<size_t>(piece)) != 0) fail_read_back(index, stored);
    done += piece;
  }
  return done;
}

// Calls f(buffer, first) over a contiguous tensor, in flat pieces of one checksum piece each that
// the host can read; `first` is the index of the piece's first element.
template <typename F>
void read_pieces(const backends::Buffer& tensor, HostWindow& window, F&& f) {
  const int64_t width = base::size_of(tensor.dtype);
  const int64_t total = tensor.bytes();
  int64_t open_bytes = 0;
  for (int64_t begin = 0; begin < total; begin += open_bytes) {
    open_bytes = std::min(window.capacity_bytes(), total - begin);
    const std::byte* const bytes = window.read(tensor.data + begin, open_bytes);
    for (int64_t done = 0; done < open_bytes; done += base::kChecksumPieceBytes) {
      backends::Buffer piece = tensor;
      piece.shape = {std::min(base::kChecksumPieceBytes, open_bytes - done) / width};
      piece.data = const_cast<std::byte*>(bytes + done);
      f(std::as_const(piece), (begin + done) / width);
    }
  }
}

void check_finite(const SavedTensor& tensor, const backends::Buffer& values, int64_t first) {
  const auto found = base::first_not_finite(values.dtype, values.data, values.elements());
  if (!found) return;
  base::throw_user_error(
      "tensor '{}' is not finite at {}, so nothing was saved and what was saved before stays; "
      "lower "
      "learning_rate or lengthen the warm-up, and go on from the last checkpoint with "
      "resume_from_checkpoint=auto",
      tensor.name, position_text(dims_of(tensor.shape), tensor.buffer.first + first + *found));
}

void note_written(backends::Trace& trace, int64_t bytes) {
  if (bytes == 0) return;
  trace.runs = 1;
  trace.channel = program::Channel::storage;
  trace.bytes += bytes;
}

constexpr std::string_view kReadBack = program::decision_name<&program::Write::read_back>();

// Whether the operation that writes the tensor says that it is read back.
bool is_read_back(const SavedTensor& tensor, const program::Program& program) {
  const auto decisions = program::decisions_of(program.operations[tensor.operation]);
  return std::ranges::any_of(decisions, [](const auto& decision) {
    return decision.first == kReadBack && decision.second != 0;
  });
}

// How many times everything that this rank wrote was read back; -1 if only a part of it was.
int64_t times_compared(const Saved& saved, size_t operation) {
  const int64_t all = saved.asked[operation];
  const int64_t compared = saved.compared[operation];
  return compared % all == 0 ? compared / all : -1;
}

// Records how often a finished program has read back what it wrote, and checks its traces.
void note_read_back(Saved& saved, const Executor& executor) {
  for (size_t i = 0; i < saved.traces.size(); ++i)
    if (saved.asked[i] > 0)
      saved.traces[i].note_largest<&program::Write::read_back>(times_compared(saved, i));
  check_performed(*executor.job().find(saved.program), saved.traces, saved.asked);
}

// Of a tensor that is copied, whose element type may be one that no program has.
formats::TensorSpec spec_of(const formats::TensorInfo& info) {
  formats::TensorSpec spec{.name = info.name, .shape = info.shape};
  if (info.dtype)
    spec.dtype = *info.dtype;
  else
    spec.other_dtype = info.stored_dtype;
  return spec;
}

std::vector<formats::TensorSpec> specs_of(const Saved& saved) {
  std::vector<formats::TensorSpec> specs;
  specs.reserve(saved.tensors.size() + saved.others.size());
  for (const SavedTensor& tensor : saved.tensors)
    specs.push_back({tensor.name, tensor.buffer.dtype, dims_of(tensor.shape)});
  for (const formats::IndexedTensor* other : saved.others) specs.push_back(spec_of(*other->info));
  return specs;
}

// Calls put(name, first byte, data, bytes) for all of the tensors that are copied, in pieces of the
// program's staging slot.
template <typename Put>
void copy_others(const Saved& saved, Executor& executor, Put&& put) {
  if (saved.others.empty()) return;
  std::byte* slot = executor.tensor(saved.program, program::staging_slot_name(0)).data;
  for (const formats::IndexedTensor* other : saved.others) {
    const int64_t total = other->info->bytes();
    for (int64_t done = 0; done < total; done += plan::kSlotBytes) {
      const int64_t piece = std::min(total - done, plan::kSlotBytes);
      saved.others_in->read_range(*other, done, piece, slot);
      put(other->info->name, done, slot, piece);
    }
  }
}

formats::TensorSpec flat_spec(const SavedTensor& tensor) {
  return {tensor.name, tensor.buffer.dtype, {tensor.elements()}};
}

// The elements of a piece that lie in the buffer; the result's `first` counts from the start of the
// piece.
backends::Buffer part_of(const backends::Buffer& buffer, const models::FilePiece& piece) {
  const int64_t begin = std::max(buffer.first, piece.first);
  const int64_t end =
      std::min(buffer.first + buffer.elements(), piece.first + piece.shape.elements());
  if (end <= begin) {
    backends::Buffer nothing = slice(buffer, 0, 0);
    nothing.first = 0;
    return nothing;
  }
  backends::Buffer part = slice(buffer, begin - buffer.first, end - begin);
  part.first = begin - piece.first;
  return part;
}

}  // namespace

void save_pieces(Saved& saved, Executor& executor, const PutPiece& put) {
  HostWindow window(executor, saved.program, 0);
  for (const SavedTensor& tensor : saved.tensors)
    read_pieces(tensor.buffer, window, [&](const backends::Buffer& piece, int64_t first) {
      check_finite(tensor, piece, first);
      note_written(saved.traces[tensor.operation],
                   put(tensor, piece, first * base::size_of(piece.dtype)));
    });
  for (size_t i = 0; i < saved.asked.size(); ++i)
    SNUG_CHECK_EQ(saved.traces[i].bytes, saved.asked[i]);
}

Saved saved_by(program::ProgramName program, FileSet files, const Executor& executor) {
  const program::Program& operations = *executor.job().find(program);
  executor.begin_stage_of(program);
  Saved saved{.program = program, .tensors = {}, .traces = {}, .asked = {}, .compared = {}};
  for (const program::Operation& operation : operations.operations) {
    const program::TensorId id = id_of(operation, program::Write::kTensor);
    const program::Tensor& tensor = operations.tensor(id);
    const auto written = written_part(tensor, executor.tensor(program, id), executor.mesh());
    const auto pieces = pieces_in(files, tensor);
    int64_t bytes = 0;
    for (const models::FilePiece& piece : pieces) {
      const backends::Buffer part = pieces.size() == 1 ? written : part_of(written, piece);
      saved.tensors.push_back({piece.name, part, piece.shape, saved.traces.size()});
      bytes += part.bytes();
    }
    saved.traces.emplace_back();
    saved.traces.back().kind = operation.kind();
    saved.asked.push_back(bytes);
  }
  saved.compared.resize(saved.asked.size());
  return saved;
}

formats::TensorChecksums write_tensors(const fs::path& folder, const std::string& stem,
                                       Saved& saved, Executor& executor, int64_t max_shard_bytes) {
  formats::ModelWriter writer(folder, specs_of(saved), max_shard_bytes, stem);
  formats::TensorChecksums checksums;
  for (const SavedTensor& tensor : saved.tensors)
    checksums[tensor.name].reserve(
        static_cast<size_t>(base::checksum_pieces(tensor.buffer.bytes())));
  save_pieces(saved, executor,
              [&](const SavedTensor& tensor, const backends::Buffer& piece, int64_t /*first*/) {
                checksums[tensor.name].push_back(base::checksum(piece.data, piece.bytes()));
                return writer.write(tensor.name, piece.data, piece.bytes());
              });
  copy_others(saved, executor,
              [&](const std::string& name, int64_t /*first*/, const std::byte* data,
                  int64_t bytes) { writer.write(name, data, bytes); });
  writer.finish();
  read_back(folder, stem, saved, executor);
  note_read_back(saved, executor);
  return checksums;
}

formats::TensorChecksums write_parts(const fs::path& folder, const std::string& stem,
                                     std::span<Saved* const> saved, Executor& executor) {
  std::vector<formats::TensorSpec> specs;
  for (const Saved* each : saved)
    for (const SavedTensor& tensor : each->tensors)
      if (tensor.elements() > 0) specs.push_back(flat_spec(tensor));
  formats::SafetensorsWriter writer(folder / (stem + ".safetensors"), specs);
  formats::TensorChecksums checksums;
  for (Saved* each : saved)
    save_pieces(*each, executor,
                [&](const SavedTensor& tensor, const backends::Buffer& piece, int64_t /*first*/) {
                  checksums[tensor.name].push_back(base::checksum(piece.data, piece.bytes()));
                  return writer.write(tensor.name, piece.data, piece.bytes());
                });
  writer.finish();
  for (Saved* each : saved) {
    read_back(folder, stem, *each, executor, true);
    note_read_back(*each, executor);
  }
  return checksums;
}

void write_together(const fs::path& folder, const std::string& stem, Saved& saved,
                    Executor& executor, int64_t max_shard_bytes) {
  const comm::Mesh& mesh = executor.mesh();
  const bool is_first = mesh.rank() == 0;
  const bool writes = is_writer(mesh);
  formats::SharedModelWriter writer(folder, specs_of(saved), max_shard_bytes, stem);
  on_all_ranks(mesh, [&] {
    if (is_first) writer.create();
  });
  on_all_ranks(mesh, [&] {
    if (!writes) return;
    if (!is_first) writer.open();
    save_pieces(saved, executor,
                [&](const SavedTensor& tensor, const backends::Buffer& piece, int64_t first) {
                  const int64_t begin = tensor.buffer.first * base::size_of(piece.dtype);
                  return writer.write(tensor.name, begin + first, piece.data, piece.bytes());
                });
    if (is_first)
      copy_others(saved, executor,
                  [&](const std::string& name, int64_t first, const std::byte* data,
                      int64_t bytes) { writer.write(name, first, data, bytes); });
    writer.sync();
  });
  on_all_ranks(mesh, [&] {
    if (is_first) writer.finish();
  });
  on_all_ranks(mesh, [&] {
    if (!writes) return;
    read_back(folder, stem, saved, executor);
    note_read_back(saved, executor);
  });
}

void read_back(const fs::path& folder, const std::string& stem, Saved& saved, Executor& executor,
               bool is_flat) {
  const program::Program& program = *executor.job().find(saved.program);
  std::byte* slot = executor.tensor(saved.program, program::staging_slot_name(0)).data;
  HostWindow window(executor, saved.program, 0);
  std::optional<formats::TensorIndex> index;
  for (const SavedTensor& tensor : saved.tensors) {
    if (!is_read_back(tensor, program) || (is_flat && tensor.elements() == 0)) continue;
    if (!index) index.emplace(folder, stem);
    const InFile in_file = is_flat ? InFile{{tensor.elements()}, 0}
                                   : InFile{dims_of(tensor.shape), tensor.buffer.first};
    saved.compared[tensor.operation] += compare(*index, tensor, in_file, slot, window);
  }
}

void save_folder(const fs::path& folder, FileSet files, int64_t max_shard_bytes,
                 const FolderWriter& writer, Executor& executor) {
  const comm::Mesh& mesh = executor.mesh();
  const bool is_shared = comm::Mesh::size_of(mesh.shards) > 1;
  std::optional<formats::DirectoryTransaction> transaction;
  on_all_ranks(mesh, [&] {
    if (mesh.rank() == 0) transaction.emplace(folder, writer.parent);
  });
  if (is_shared) {
    const fs::path staging =
        from_first_rank(mesh, transaction ? transaction->staging().string() : "");
    executor.backend().synchronise();
    Saved saved = saved_by(program::ProgramName::save, files, executor);
    if (writer.complete) writer.complete(saved);
    write_together(staging, stem_of(files), saved, executor, max_shard_bytes);
  }
  on_all_ranks(mesh, [&] {
    if (!transaction) return;
    (is_shared ? writer.write_config : writer.write_alone)(transaction->staging());
    transaction->commit(formats::DirectoryTransaction::IfExists::replace);
  });
}

}  // namespace snug::runtime
