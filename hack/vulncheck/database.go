package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// publicDatabase is Go's own.
const publicDatabase = "https://vuln.go.dev"

// database is a vulnerability database that answers.
type database struct {
	url      string
	modified time.Time
}

// silentError is that nobody has named a database, and the public one does not answer.
type silentError struct{ err error }

func (e *silentError) Error() string { return e.err.Error() }
func (e *silentError) Unwrap() error { return e.err }

// choose takes the database that was named, which must answer, or else the public one.
func choose(ctx context.Context, named, public string) (database, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	if named != "" {
		db, err := ask(ctx, named)
		if err != nil {
			return database{}, fmt.Errorf("the database that GOVULNDB names: %w", err)
		}
		return db, nil
	}
	db, err := ask(ctx, public)
	if err != nil {
		return database{}, &silentError{err}
	}
	return db, nil
}

// ask reads how old a database is.
func ask(ctx context.Context, location string) (database, error) {
	parsed, err := url.Parse(location)
	if err != nil {
		return database{}, fmt.Errorf("%q is not a URL: %w", location, err)
	}
	var index []byte
	switch parsed.Scheme {
	case "file":
		index, err = os.ReadFile(filepath.Join(filepath.FromSlash(parsed.Path), "index", "db.json"))
	case "http", "https":
		index, err = get(ctx, strings.TrimSuffix(location, "/")+"/index/db.json")
	default:
		err = fmt.Errorf("it begins with neither https:// nor file://")
	}
	if err != nil {
		return database{}, fmt.Errorf("%s: %w", location, err)
	}
	var state struct {
		Modified time.Time `json:"modified"`
	}
	if err := json.Unmarshal(index, &state); err != nil {
		return database{}, fmt.Errorf("%s: index/db.json is not the index of a vulnerability database: %w", location, err)
	}
	if state.Modified.IsZero() {
		return database{}, fmt.Errorf("%s: index/db.json does not contain the time of the last change", location)
	}
	return database{url: location, modified: state.Modified}, nil
}

func get(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %s", response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, 1<<20))
}
