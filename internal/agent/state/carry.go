package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/windows-machine-config/wmco/internal/plan"
)

// An agent of a later release may write fields into the ledger that this agent does not know. The ledger is the
// only record of the original state of the host, so this agent preserves unknown fields. A field is unknown if
// it is in the file but no longer in the result of decoding and encoding the file.

// mergeUnknown returns the JSON form of a ledger, extended by the content of the current file that this agent does not
// know.
func mergeUnknown(present, next []byte) ([]byte, error) {
	if present == nil {
		return next, nil
	}
	old, known, err := splitKnown(present)
	if err != nil {
		return nil, err
	}
	if len(lostPaths(old, known, "")) == 0 {
		return next, nil
	}
	wanted, err := decodeJSON(next)
	if err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(mergeValue(old, known, wanted), "", " ")
	if err != nil {
		return nil, fmt.Errorf("encode the ledger: %w", err)
	}
	return data, nil
}

// unknownFields returns the paths of the fields in a ledger file that this agent does not know.
func unknownFields(present []byte) ([]string, error) {
	old, known, err := splitKnown(present)
	if err != nil {
		return nil, err
	}
	return lostPaths(old, known, ""), nil
}

// splitKnown returns the content of a ledger file, and the part of the content that this agent knows.
func splitKnown(present []byte) (old, known any, err error) {
	var ledger plan.Ledger
	if err := json.Unmarshal(present, &ledger); err != nil {
		return nil, nil, fmt.Errorf("decode the ledger: %w", err)
	}
	encoded, err := json.Marshal(ledger)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the ledger: %w", err)
	}
	if old, err = decodeJSON(present); err != nil {
		return nil, nil, err
	}
	known, err = decodeJSON(encoded)
	return old, known, err
}

// decodeJSON decodes arbitrary JSON and preserves the notation of numbers.
func decodeJSON(data []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("decode the ledger: %w", err)
	}
	return value, nil
}

// mergeValue returns next with the content that is in old but not in known. An entry missing in next was restored;
// its unknown fields are dropped with the entry.
func mergeValue(old, known, next any) any {
	switch was := old.(type) {
	case map[string]any:
		knows, _ := known.(map[string]any)
		if has, ok := next.(map[string]any); ok {
			mergeObject(was, knows, has)
		}
	case []any:
		knows, _ := known.([]any)
		if has, ok := next.([]any); ok && len(was) == len(knows) {
			mergeList(was, knows, has)
		}
	}
	return next
}

func mergeObject(was, knows, has map[string]any) {
	for name, value := range was {
		understood, isKnown := knows[name]
		now, there := has[name]
		switch {
		case there && isKnown:
			has[name] = mergeValue(value, understood, now)
		case !there && !isKnown:
			has[name] = value
		}
	}
}

// mergeList matches list elements by their known part.
func mergeList(was, knows, has []any) {
	for i, element := range was {
		at := slices.IndexFunc(has, func(now any) bool { return reflect.DeepEqual(now, knows[i]) })
		if at >= 0 {
			has[at] = mergeValue(element, knows[i], has[at])
		}
	}
}

// lostPaths returns the paths that are in old but not in known. Zero values are ignored because an encoder may omit
// them.
func lostPaths(old, known any, name string) (names []string) {
	switch was := old.(type) {
	case map[string]any:
		knows, _ := known.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(was)) {
			path := key
			if name != "" {
				path = name + "." + key
			}
			if understood, isKnown := knows[key]; isKnown {
				names = append(names, lostPaths(was[key], understood, path)...)
			} else if !isZero(was[key]) {
				names = append(names, path)
			}
		}
	case []any:
		knows, _ := known.([]any)
		for i := range min(len(was), len(knows)) {
			names = append(names, lostPaths(was[i], knows[i], fmt.Sprintf("%s[%d]", name, i))...)
		}
	}
	return names
}

func isZero(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case json.Number:
		return v == "0"
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}
