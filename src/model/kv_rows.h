#pragma once
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "model/kv_layout.h"
#include "model/kv_memory.h"
#include "model/model.h"

/// Single rows of KV memory: what eviction moves and policies read.
namespace hidane::model {

/// As Model::MoveRows.
void MoveRows(const KvMemory& kv, const KvLayout& layout, KvUnit unit,
              std::span<const RowMove> moves);

/// As Model::SaveSlots and LoadSlots.
void SaveSlots(const KvMemory& kv, const KvLayout& layout, std::span<const BlockId> block_table,
               uint32_t slots, std::span<std::byte> bytes);
void LoadSlots(const KvMemory& kv, const KvLayout& layout, std::span<const BlockId> block_table,
               uint32_t slots, std::span<const std::byte> bytes);

/// As Model::ReadKeys.
void ReadKeys(const KvMemory& kv, const KvLayout& layout, uint32_t layer, uint32_t kv_head,
              std::span<const BlockId> block_table, uint32_t first, uint32_t n,
              std::span<float> out);

}  // namespace hidane::model
