#include "backends/cuda/attention/attention_note.h"

#include <type_traits>

#include "backends/cuda/attention/cudnn_attention.h"
#include "backends/cuda/attention/cudnn_needs.h"
#include "backends/cuda/needs/kind_needs.h"

namespace snug::backends::cuda {
namespace {

using program::Attention;
using program::AttentionGrad;
using program::OperationView;

bool reads_cache(const Attention& attention) { return attention.paged || attention.quantized; }
bool reads_cache(const AttentionGrad& /*grad*/) { return false; }

template <typename Attributes>
std::string who(const Attributes& attention, const OperationView& view, CudaContext& context) {
  if (is_by_library(attention)) {
    // Of a program that was planned elsewhere, the library is asked now.
    if (const std::string doubt = why_cudnn_is_left(view, context); !doubt.empty())
      return fmt::format("cuDNN, as it was planned, although {}", doubt);
    const size_t calls = buckets_of(attention, view).size();
    const LibraryAnswer& answer =
        context.checked_segments.at({segments_of(attention, view), attention.no_empty_segments});
    return fmt::format("cuDNN {}{}, which agrees with own kernels to {:.1e}",
                       context.cudnn->version(),
                       calls > 1 ? fmt::format(", in {} groups of documents by length", calls) : "",
                       answer.difference);
  }
  std::string why = why_not_cudnn(attention, view, context.device.card);
  if (why.empty()) {
    program::Operation by_library = view.operation;
    by_library.attributes = decide(view, context.device.card);
    why = why_cudnn_is_left({view.program, by_library}, context);
    // Whoever reads the log of a measurement looks for these words.
    return fmt::format("own kernels are planned for it, since {}", why);
  }
  return fmt::format("own kernels{}, since {}",
                     is_on_tensor_cores(attention) ? "" : " without tensor cores", why);
}

template <typename Attributes>
void note(const Attributes& attention, const OperationView& view, CudaContext& context) {
  if (reads_cache(attention) ||
      id_of(view.operation, Attributes::kQBounds) != id_of(view.operation, Attributes::kKBounds))
    return;
  context.library_checks.note(
      fmt::format("{} of {} heads of {} on {}{}{}, {}: {}",
                  std::is_same_v<Attributes, AttentionGrad> ? "attention's gradient" : "attention",
                  attention.heads, attention.head_dim, attention.kv_heads,
                  attention.window > 0 ? fmt::format(", window {}", attention.window) : "",
                  attention.softcap > 0 ? fmt::format(", soft cap {}", attention.softcap) : "",
                  base::name_of(view[Attributes::kQ].dtype), who(attention, view, context)));
}

}  // namespace

void note_attention(const OperationView& view, CudaContext& context) {
  const auto& attributes = view.operation.attributes;
  if (const auto* attention = attributes.get_if<Attention>()) note(*attention, view, context);
  if (const auto* grad = attributes.get_if<AttentionGrad>()) note(*grad, view, context);
}

}  // namespace snug::backends::cuda
