#include "sim/key_moves.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hidane::sim {
namespace {

constexpr uint64_t kKey = 7;

Row RowOf(const KeyMoves& moves) {
  Row row;
  moves.FillRow(row);
  return row;
}

TEST(KeyMoves, AreUnknownWhereNoKeyComesTwice) {
  KeyMoves moves;
  const auto lives = [](KeyMoves::Place) { return true; };
  moves.Serve(kKey, {1, 0}, lives);
  moves.Serve(kKey + 1, {2, 0}, lives);
  EXPECT_TRUE(std::isnan(RowOf(moves).keys_moved));
}

TEST(KeyMoves, AreShareOfTheSightsAfterTheFirst) {
  KeyMoves moves;
  const auto lives = [](KeyMoves::Place) { return true; };
  for (const uint32_t worker : {1, 1, 2, 2, 2}) moves.Serve(kKey, {worker, 0}, lives);
  EXPECT_EQ(RowOf(moves).keys_moved, 0.25);
  EXPECT_EQ(RowOf(moves).keys_lost, 0);
}

TEST(KeyMoves, ThatALossForcedAreToldApart) {
  KeyMoves moves;
  const auto life_of_1 = [](KeyMoves::Place place) { return place.worker != 1 || place.life == 1; };
  moves.Serve(kKey, {1, 0}, life_of_1);
  moves.Serve(kKey, {2, 0}, life_of_1);  // 1 was lost meanwhile
  moves.Serve(kKey, {1, 1}, life_of_1);  // 2 was not
  moves.Serve(kKey, {1, 1}, life_of_1);
  EXPECT_DOUBLE_EQ(RowOf(moves).keys_lost, 1.0 / 3);
  EXPECT_DOUBLE_EQ(RowOf(moves).keys_moved, 1.0 / 3);
}

TEST(KeyMoves, BackAtAWorkerThatLostItIsALossToo) {
  KeyMoves moves;
  moves.Serve(kKey, {1, 0}, [](KeyMoves::Place) { return true; });
  moves.Serve(kKey, {1, 1}, [](KeyMoves::Place place) { return place.life == 1; });
  EXPECT_EQ(RowOf(moves).keys_lost, 1);
}

}  // namespace
}  // namespace hidane::sim
