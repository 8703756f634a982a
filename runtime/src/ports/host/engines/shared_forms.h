// What is made of constants, shared by the plans for the same ones.
#pragma once

#include <map>
#include <memory>
#include <mutex>

namespace hipdnn_port {

/// Values by key, each for as long as somebody holds it. Thread-safe; one is made once however many ask for it.
template <class Key, class Value>
class SharedForms {
 public:
  /// The value, from `make()` where nobody holds it: a shared pointer to it.
  template <class Make>
  std::shared_ptr<const Value> find(const Key& key, const Make& make) {
    const std::shared_ptr<Form> form = find_form(key);
    const std::lock_guard lock(form->mutex);
    if (auto known = form->value.lock()) return known;
    std::shared_ptr<const Value> made = make();
    form->value = made;
    return made;
  }

 private:
  /// `mutex` is held while the value is made.
  struct Form {
    std::mutex mutex;
    std::weak_ptr<const Value> value;
  };

  std::shared_ptr<Form> find_form(const Key& key) {
    const std::lock_guard lock(mutex_);
    std::erase_if(forms_, [&](const auto& entry) { return entry.second.use_count() == 1 && entry.second->value.expired() && entry.first != key; });
    std::shared_ptr<Form>& form = forms_[key];
    if (form == nullptr) form = std::make_shared<Form>();
    return form;
  }

  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Form>> forms_;
};

}  // namespace hipdnn_port
