package csds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"xdspub/diag"
	"xdspub/internal/grpcdial"
	"xdspub/xds/clients"
)

// maxAnswer is the largest answer in bytes, above the answer for 10,000 clients.
const maxAnswer = 256 << 20

// Ask asks an xdspub serve for its own state and for its clients. The address is HOST:PORT or unix:PATH. Ask
// uses TLS with the files, or no TLS if files is nil. Without a deadline of ctx, Ask may wait for ever.
func Ask(ctx context.Context, address string, files *grpcdial.Files) (*Answer, error) {
	answer, err := ask(ctx, address, files)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", address, err)
	}
	return answer, nil
}

func ask(ctx context.Context, address string, files *grpcdial.Files) (*Answer, error) {
	d, err := grpcdial.New(address, "--tls", files)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	conn, err := d.Connect(ctx, maxAnswer)
	if err != nil {
		cancel()
		return nil, err
	}
	defer conn.Close()
	defer cancel() // before conn.Close, which would wait 5s for a server that doesn't read
	answer, err := statusv3.NewClientStatusDiscoveryServiceClient(conn).FetchClientStatus(ctx, &statusv3.ClientStatusRequest{})
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("the server has not answered: %w", ctx.Err())
	case status.Code(err) == codes.DeadlineExceeded: // the library may report the deadline first
		return nil, fmt.Errorf("the server has not answered: %w", context.DeadlineExceeded)
	case err != nil && d.Reason() != nil:
		return nil, d.Reason()
	case err != nil:
		return nil, errors.New(diag.Clip(status.Convert(err).Message(), diag.MaxText))
	}
	says, own := &Answer{Clients: []clients.Client{}}, false
	for _, config := range answer.GetConfig() {
		if text := config.GetNode().GetMetadata().GetFields()[serverKey].GetStringValue(); text != "" {
			if err := json.Unmarshal([]byte(text), &says.Server); err != nil {
				return nil, err
			}
			own = true
			continue
		}
		c, err := clientOf(config)
		if err != nil {
			return nil, err
		}
		says.Clients = append(says.Clients, c)
	}
	if !own {
		return nil, errors.New("the answer does not describe the server: the server is not xdspub serve, or an older version")
	}
	return says, nil
}
