#pragma once
#include <array>

#include "sim/random.h"

/// Statistics of 516 Claude Code sessions with 34187 main requests: those whose contexts
/// stay within 180000 tokens. Source: callanjfox/kv-cache-tester @94f6046d, traces
/// (Apache-2.0), delta-coded. Printed by `tools/agents_table.py agentic_sessions_delta.jsonl.gz`.
/// Of the turns that change nothing before them, 88.1 % are longer by the whole answer.
namespace hidane::sim::agents {

// clang-format off
inline constexpr uint32_t kContextMax = 180000;
using Table = std::array<Quantile, 15>;
using ShortTable = std::array<Quantile, 7>;

inline constexpr Table kTurns = {{{0, 3}, {0.01, 3}, {0.05, 5}, {0.1, 7}, {0.25, 18}, {0.5, 46}, {0.75, 89}, {0.85, 122}, {0.9, 148}, {0.95, 207}, {0.98, 282}, {0.99, 342}, {0.995, 411}, {0.999, 514}, {1, 514}}};
inline constexpr Table kStaticTokens = {{{0, 4210}, {0.01, 8437}, {0.05, 10069}, {0.1, 11997}, {0.25, 14731}, {0.5, 15204}, {0.75, 15535}, {0.85, 15863}, {0.9, 16109}, {0.95, 16958}, {0.98, 21080}, {0.99, 21317}, {0.995, 22006}, {0.999, 23081}, {1, 23081}}};
inline constexpr Table kOutputTokens = {{{0, 0}, {0.01, 57}, {0.05, 90}, {0.1, 105}, {0.25, 139}, {0.5, 214}, {0.75, 405}, {0.85, 605}, {0.9, 833}, {0.95, 1424}, {0.98, 2600}, {0.99, 3738}, {0.995, 5101}, {0.999, 8337}, {1, 18195}}};
inline constexpr Table kThinkSeconds = {{{0, 0}, {0.01, 2}, {0.05, 3}, {0.1, 4}, {0.25, 5}, {0.5, 10}, {0.75, 36}, {0.85, 103}, {0.9, 173}, {0.95, 454}, {0.98, 1467}, {0.99, 3005}, {0.995, 3478}, {0.999, 11700}, {1, 77589}}};
/// Share of the turns before which a session pauses as it usually does: the square root of the
/// correlation of its pauses, those over 30 s taken as 30 s, 1 to 10 turns apart.
inline constexpr double kThinkUsual = 0.491;
/// Tokens that a turn adds beside the answer before it.
inline constexpr Table kAddedTokens = {{{0, 0}, {0.01, 0}, {0.05, 0}, {0.1, 0}, {0.25, 36}, {0.5, 264}, {0.75, 987}, {0.85, 1844}, {0.9, 2808}, {0.95, 5048}, {0.98, 9937}, {0.99, 14530}, {0.995, 21554}, {0.999, 48500}, {1, 115432}}};

/// Sessions with few turns begin longer than those with many.
struct Stratum {
  double turns_below;       ///< quantile of kTurns
  ShortTable first_tokens;  ///< of the first prompt
  ShortTable growth;        ///< by turns that only add, over the room that the first prompt leaves
};
inline constexpr Stratum kStrata[] = {
    {0.1,
     {{{0, 9925}, {0.1, 15291}, {0.25, 20064}, {0.5, 107986}, {0.75, 136383}, {0.9, 143969}, {1, 161509}}},
     {{{0, 0.000988944}, {0.1, 0.0170218}, {0.25, 0.0338369}, {0.5, 0.127164}, {0.75, 0.208415}, {0.9, 0.354551}, {1, 0.644208}}}},
    {0.25,
     {{{0, 11422}, {0.1, 16591}, {0.25, 19596}, {0.5, 27645}, {0.75, 69239}, {0.9, 123001}, {1, 156689}}},
     {{{0, 0.0125606}, {0.1, 0.0428175}, {0.25, 0.0916665}, {0.5, 0.237057}, {0.75, 0.357224}, {0.9, 0.455335}, {1, 0.788988}}}},
    {0.5,
     {{{0, 8979}, {0.1, 13899}, {0.25, 17869}, {0.5, 31447}, {0.75, 92499}, {0.9, 112994}, {1, 146361}}},
     {{{0, 0.111012}, {0.1, 0.224953}, {0.25, 0.302429}, {0.5, 0.443776}, {0.75, 0.623525}, {0.9, 0.770216}, {1, 1.11913}}}},
    {0.75,
     {{{0, 10972}, {0.1, 15459}, {0.25, 17670}, {0.5, 19442}, {0.75, 25564}, {0.9, 71923}, {1, 128679}}},
     {{{0, 0.149466}, {0.1, 0.325703}, {0.25, 0.548006}, {0.5, 0.68253}, {0.75, 0.846651}, {0.9, 1.11873}, {1, 1.64608}}}},
    {0.9,
     {{{0, 10244}, {0.1, 15678}, {0.25, 18339}, {0.5, 19593}, {0.75, 21599}, {0.9, 37744}, {1, 94756}}},
     {{{0, 0.357866}, {0.1, 0.583649}, {0.25, 0.766518}, {0.5, 1.00222}, {0.75, 1.26771}, {0.9, 1.56576}, {1, 2.37645}}}},
    {1,
     {{{0, 6343}, {0.1, 15829}, {0.25, 18940}, {0.5, 19584}, {0.75, 22359}, {0.9, 25439}, {1, 84352}}},
     {{{0, 0.456598}, {0.1, 0.889807}, {0.25, 1.17967}, {0.5, 1.76656}, {0.75, 2.3883}, {0.9, 3.3271}, {1, 5.45004}}}},
};

/// How much more than the mean is added at a length of the prompt, as a share of kContextMax: agents
/// read much at first, and again after a compaction.
inline constexpr std::array<Quantile, 11> kAddedByContext = {{{0, 4.94}, {0.05556, 4.94}, {0.1667, 2.03}, {0.2778, 1.03}, {0.3889, 0.9}, {0.5, 0.821}, {0.6111, 0.792}, {0.7222, 0.771}, {0.8333, 0.669}, {0.9444, 0.47}, {1, 0.47}}};

/// A long history is replaced by a short one: at which prompt, and its size over that.
inline constexpr Table kCompactAt = {{{0, 121276}, {0.01, 122048}, {0.05, 134775}, {0.1, 141040}, {0.25, 146775}, {0.5, 151781}, {0.75, 158523}, {0.85, 162455}, {0.9, 163639}, {0.95, 165085}, {0.98, 168779}, {0.99, 170977}, {0.995, 173048}, {0.999, 173048}, {1, 173048}}};
inline constexpr Table kCompactSize = {{{0, 0.135045}, {0.01, 0.135458}, {0.05, 0.154396}, {0.1, 0.163499}, {0.25, 0.198536}, {0.5, 0.263823}, {0.75, 0.433266}, {0.85, 0.554606}, {0.9, 0.610816}, {0.95, 0.660835}, {0.98, 0.677404}, {0.99, 0.680794}, {0.995, 0.689164}, {0.999, 0.689164}, {1, 0.689164}}};
/// Compactions that keep tools and system text, or not even those.
inline constexpr std::array<double, 2> kCompactions = {107, 74};

/// Share of the other turns that change history.
inline constexpr double kEditShare = 0.0225;
/// Those that keep tools and system text, not even those, or more.
inline constexpr std::array<double, 3> kEdits = {221, 175, 356};
inline constexpr Table kEditSize = {{{0, 0.140187}, {0.01, 0.261059}, {0.05, 0.748781}, {0.1, 0.862258}, {0.25, 1.00174}, {0.5, 1.00627}, {0.75, 1.02918}, {0.85, 1.0594}, {0.9, 1.11559}, {0.95, 1.37699}, {0.98, 2.33655}, {0.99, 3.26428}, {0.995, 5.04119}, {0.999, 6.61266}, {1, 6.61266}}};
/// Of the last kind: how much of the prompt before.
inline constexpr Table kEditKeep = {{{0, 0.108756}, {0.01, 0.120711}, {0.05, 0.145243}, {0.1, 0.205678}, {0.25, 0.993149}, {0.5, 0.997423}, {0.75, 0.998418}, {0.85, 0.998628}, {0.9, 0.998798}, {0.95, 0.998902}, {0.98, 0.999004}, {0.99, 0.999041}, {0.995, 0.999049}, {0.999, 0.999081}, {1, 0.999081}}};
// clang-format on

}  // namespace hidane::sim::agents
