#include "memory_node/pool/slab_set.h"

#include <utility>

namespace farkv {

size_t SlabSet::FreePages(const SlabClass& slab_class) const {
  const auto found = classes_.find(slab_class);
  return found == classes_.end() ? 0 : found->second.free_pages;
}

size_t SlabSet::EmptyOfOthers(const SlabClass& slab_class) const {
  size_t count = 0;
  for (uint32_t id : empty_) {
    if (slabs_.at(id)->slab_class() != slab_class) ++count;
  }
  return count;
}

size_t SlabSet::ReachablePages(const SlabClass& slab_class) const {
  const size_t fresh = max_slabs_ - slabs_.size() - booked_;
  const size_t slabs = fresh + EmptyOfOthers(slab_class) + Booked(slab_class);
  return FreePages(slab_class) + slabs * (slab_bytes_ / slab_class.stride);
}

PageHandle SlabSet::Take(const SlabClass& slab_class) {
  ClassState& state = classes_.at(slab_class);
  Slab& slab = *slabs_.at(*state.with_room.begin());
  const PageHandle handle = slab.Take(Generation{numbers_.generation++});
  --state.free_pages;
  empty_.erase(slab.id());
  if (slab.num_free() == 0) state.with_room.erase(slab.id());
  return handle;
}

Slab* SlabSet::Find(uint32_t slab_id) const {
  const auto found = slabs_.find(slab_id);
  return found == slabs_.end() ? nullptr : found->second.get();
}

void SlabSet::NoteFreed(Slab& slab) {
  ClassState& state = classes_.at(slab.slab_class());
  ++state.free_pages;
  state.with_room.insert(slab.id());
  if (slab.empty()) empty_.insert(slab.id());
}

std::unique_ptr<Slab> SlabSet::Remove(uint32_t slab_id) {
  const auto found = slabs_.find(slab_id);
  std::unique_ptr<Slab> slab = std::move(found->second);
  slabs_.erase(found);
  empty_.erase(slab_id);
  const auto state = classes_.find(slab->slab_class());
  state->second.free_pages -= slab->num_free();
  state->second.with_room.erase(slab_id);
  if (--state->second.slabs == 0) classes_.erase(state);
  return slab;
}

SlabSet::Reservation SlabSet::Reserve(const SlabClass& slab_class) {
  Reservation reservation;
  if (Room() == 0) {
    reservation.closed = CloseEmptyOfOthers(slab_class);
    if (reservation.closed == nullptr) return reservation;
    owed_ = slab_class;
  }
  ++booked_;
  ++booked_of_[slab_class];
  reservation.reserved = true;
  return reservation;
}

std::unique_ptr<Slab> SlabSet::CloseEmptyOfOthers(const SlabClass& slab_class) {
  for (uint32_t id : empty_) {
    if (slabs_.at(id)->slab_class() != slab_class) return Remove(id);
  }
  return nullptr;
}

bool SlabSet::WantsAhead() const {
  if (Room() > 0) return true;
  return owed_.has_value() && ready_.empty() && making_ahead_ == 0 &&
         EmptyOfOthers(*owed_) > 0;
}

SlabSet::Reservation SlabSet::ReserveAhead() {
  Reservation reservation;
  if (!WantsAhead()) return reservation;
  if (Room() == 0) {
    reservation.closed = CloseEmptyOfOthers(*owed_);
    owed_.reset();
  }
  ++making_ahead_;
  reservation.reserved = true;
  return reservation;
}

void SlabSet::AddReady(SlabMemory memory) {
  --making_ahead_;
  ready_.push_back(std::move(memory));
}

void SlabSet::AbandonAhead() { --making_ahead_; }

bool SlabSet::AssignReady(const SlabClass& slab_class) {
  if (ready_.empty()) return false;
  Insert(slab_class, std::move(ready_.back()));
  ready_.pop_back();
  return true;
}

void SlabSet::Add(const SlabClass& slab_class, SlabMemory memory) {
  EndBooking(slab_class);
  Insert(slab_class, std::move(memory));
}

void SlabSet::Insert(const SlabClass& slab_class, SlabMemory memory) {
  const uint32_t id = numbers_.slab_id++;
  auto slab = std::make_unique<Slab>(id, slab_class, std::move(memory));
  ClassState& state = classes_[slab_class];
  ++state.slabs;
  state.free_pages += slab->num_free();
  state.with_room.insert(id);
  empty_.insert(id);
  slabs_.emplace(id, std::move(slab));
}

void SlabSet::Abandon(const SlabClass& slab_class) { EndBooking(slab_class); }

void SlabSet::EndBooking(const SlabClass& slab_class) {
  --booked_;
  const auto booked = booked_of_.find(slab_class);
  if (--booked->second == 0) booked_of_.erase(booked);
}

size_t SlabSet::Booked(const SlabClass& slab_class) const {
  const auto booked = booked_of_.find(slab_class);
  return booked == booked_of_.end() ? 0 : booked->second;
}

}  // namespace farkv
