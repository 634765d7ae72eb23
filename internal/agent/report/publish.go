package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// publishCondition writes the condition into the status of the Node at the URL. It reads the complete Node
// because a kubelet is not allowed to read the status alone. The API server merges conditions by type, so the
// kubelet's own conditions are preserved. The last transition time is preserved while the status is unchanged.
func publishCondition(ctx context.Context, api APIServer, as Credentials, url string, condition nodeCondition) error {
	present, err := currentCondition(ctx, api, as, url, condition.Type)
	if err != nil {
		return err
	}
	condition.LastTransitionTime = condition.LastHeartbeatTime
	if present != nil && present.Status == condition.Status && !present.LastTransitionTime.IsZero() {
		condition.LastTransitionTime = present.LastTransitionTime
	}
	body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []nodeCondition{condition}}})
	if err != nil {
		return fmt.Errorf("encode the condition: %w", err)
	}
	_, err = sendRequest(ctx, api, as, http.MethodPatch, url+"/status", body)
	return err
}

// currentCondition returns the Node's current condition of the type from the API server, or nil if there is
// none.
func currentCondition(ctx context.Context, api APIServer, as Credentials, url, kind string) (*nodeCondition, error) {
	answer, err := sendRequest(ctx, api, as, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	var node struct {
		Status struct {
			Conditions []struct {
				Type               string     `json:"type"`
				Status             string     `json:"status"`
				LastTransitionTime *time.Time `json:"lastTransitionTime"`
			} `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal(answer, &node); err != nil {
		return nil, fmt.Errorf("decode the Node from %s: %w", url, err)
	}
	for _, c := range node.Status.Conditions {
		if c.Type != kind {
			continue
		}
		present := &nodeCondition{Type: c.Type, Status: c.Status}
		if c.LastTransitionTime != nil {
			present.LastTransitionTime = *c.LastTransitionTime
		}
		return present, nil
	}
	return nil, nil
}

// sendRequest sends a request and returns the body of the response, or a refusal if the response is not a success.
func sendRequest(ctx context.Context, api APIServer, as Credentials, method, url string, body []byte) ([]byte, error) {
	code, answer, err := api.Send(ctx, as, method, url, body)
	if err != nil {
		return nil, err
	}
	if code/100 == 2 {
		return answer, nil
	}
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(answer, &status) != nil || status.Message == "" {
		status.Message = http.StatusText(code)
	}
	return nil, &refusal{method, url, code, truncateLine(status.Message, maxConditionMessage)}
}

// refusal is a response of the API server other than success.
type refusal struct {
	method, url string
	code        int
	message     string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%s %s: the API server returned status %d: %s", r.method, r.url, r.code, r.message)
}

// isRefused reports whether the API server responded and would repeat the response to an early retry.
func isRefused(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.code != http.StatusTooManyRequests && r.code/100 != 5 && r.code != http.StatusConflict
}
