// Carries out what gateway-sdks.test.js asks, a line for each question, by the SDKs of Go for S3: clients NAME ENDPOINT.
// A question: verb, bucket, key (of a listing the prefix), range, If-Match; an answer: `ok` or `error` and more words;
// tabs between.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/minio/minio-go/v7"
	minioKeys "github.com/minio/minio-go/v7/pkg/credentials"
)

type question struct{ verb, bucket, key, span, match string }

type client func(context.Context, question) ([]string, error)

func main() {
	name, endpoint := os.Args[1], os.Args[2]
	ask := map[string]func(string) client{"aws-sdk-go-v2": openAws, "minio-go": openMinio}[name](endpoint)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := append(strings.Split(lines.Text(), "\t"), "", "", "")
		said, err := ask(context.Background(), question{words[0], words[1], words[2], words[3], words[4]})
		if err != nil {
			fmt.Println(strings.Join(append([]string{"error"}, said...), "\t"))
		} else {
			fmt.Println(strings.Join(append([]string{"ok"}, said...), "\t"))
		}
	}
}

func digest(body io.Reader, etag string) ([]string, error) {
	all, err := io.ReadAll(body)
	if err != nil {
		return []string{fmt.Sprintf("%T", err), "0", err.Error()}, err
	}
	return []string{fmt.Sprintf("%x", sha256.Sum256(all)), fmt.Sprint(len(all)), strings.Trim(etag, `"`)}, nil
}

func optional(word string) *string {
	if word == "" {
		return nil
	}
	return &word
}

func openAws(endpoint string) client {
	sdk := s3.New(s3.Options{
		Region:       "us-east-1",
		BaseEndpoint: &endpoint,
		UsePathStyle: true,
		Credentials:  credentials.NewStaticCredentialsProvider("any", "any", ""),
	})
	return func(ctx context.Context, q question) ([]string, error) {
		said, err := askAws(ctx, sdk, q)
		if err == nil {
			return said, nil
		}
		name, status := fmt.Sprintf("%T", err), 0
		var missing *types.NoSuchKey
		var absent *types.NotFound
		var refusal smithy.APIError
		var answer *awshttp.ResponseError
		if errors.As(err, &answer) {
			status = answer.HTTPStatusCode()
		}
		switch {
		case errors.As(err, &missing):
			name = "types.NoSuchKey"
		case errors.As(err, &absent):
			name = "types.NotFound"
		case errors.As(err, &refusal):
			name = refusal.ErrorCode()
		}
		return []string{name, fmt.Sprint(status), strings.ReplaceAll(err.Error(), "\n", " ")}, err
	}
}

func askAws(ctx context.Context, sdk *s3.Client, q question) ([]string, error) {
	switch q.verb {
	case "list":
		keys := []string{}
		pages := s3.NewListObjectsV2Paginator(sdk, &s3.ListObjectsV2Input{
			Bucket: &q.bucket, Prefix: &q.key, MaxKeys: aws.Int32(7),
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, err
			}
			for _, object := range page.Contents {
				keys = append(keys, *object.Key)
			}
		}
		return keys, nil
	case "head":
		found, err := sdk.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &q.bucket, Key: &q.key})
		if err != nil {
			return nil, err
		}
		return []string{"", fmt.Sprint(*found.ContentLength), strings.Trim(*found.ETag, `"`)}, nil
	case "get":
		found, err := sdk.GetObject(ctx, &s3.GetObjectInput{
			Bucket: &q.bucket, Key: &q.key, Range: optional(q.span), IfMatch: optional(q.match),
		})
		if err != nil {
			return nil, err
		}
		defer found.Body.Close()
		return digest(found.Body, *found.ETag)
	case "parts":
		manager := transfermanager.New(sdk, func(o *transfermanager.Options) { o.PartSizeBytes = 5 << 20 })
		found, err := manager.GetObject(ctx, &transfermanager.GetObjectInput{Bucket: &q.bucket, Key: &q.key})
		if err != nil {
			return nil, err
		}
		return digest(found.Body, "")
	}
	_, err := sdk.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &q.bucket, Key: &q.key, Body: bytes.NewReader(make([]byte, 8<<20)),
	})
	return nil, err
}

func openMinio(endpoint string) client {
	sdk, err := minio.New(strings.TrimPrefix(endpoint, "http://"), &minio.Options{
		Creds: minioKeys.NewStaticV4("any", "any", ""),
	})
	if err != nil {
		panic(err)
	}
	return func(ctx context.Context, q question) ([]string, error) {
		said, err := askMinio(ctx, sdk, q)
		if err == nil {
			return said, nil
		}
		answer := minio.ToErrorResponse(err)
		return []string{answer.Code, fmt.Sprint(answer.StatusCode), strings.ReplaceAll(err.Error(), "\n", " ")}, err
	}
}

func askMinio(ctx context.Context, sdk *minio.Client, q question) ([]string, error) {
	options := minio.GetObjectOptions{}
	switch q.verb {
	case "list":
		keys := []string{}
		listing := minio.ListObjectsOptions{Prefix: q.key, Recursive: true, MaxKeys: 7}
		for object := range sdk.ListObjects(ctx, q.bucket, listing) {
			if object.Err != nil {
				return nil, object.Err
			}
			keys = append(keys, object.Key)
		}
		return keys, nil
	case "head":
		found, err := sdk.StatObject(ctx, q.bucket, q.key, options)
		return []string{"", fmt.Sprint(found.Size), found.ETag}, err
	case "get":
		if q.span != "" {
			options.Set("Range", q.span)
		}
		if q.match != "" {
			if err := options.SetMatchETag(q.match); err != nil {
				return nil, err
			}
		}
		core := minio.Core{Client: sdk}
		body, found, _, err := core.GetObject(ctx, q.bucket, q.key, options)
		if err != nil {
			return nil, err
		}
		defer body.Close()
		return digest(body, found.ETag)
	case "parts": // as rclone and others read: from the middle, then from the start
		object, err := sdk.GetObject(ctx, q.bucket, q.key, options)
		if err != nil {
			return nil, err
		}
		defer object.Close()
		found, err := object.Stat()
		if err != nil {
			return nil, err
		}
		all := make([]byte, found.Size)
		for _, at := range []int64{found.Size / 2, 0} {
			end := found.Size
			if at == 0 {
				end = found.Size / 2
			}
			if _, err := object.ReadAt(all[at:end], at); err != nil && err != io.EOF {
				return nil, err
			}
		}
		return digest(bytes.NewReader(all), "")
	}
	_, err := sdk.PutObject(ctx, q.bucket, q.key, bytes.NewReader(make([]byte, 8<<20)), 8<<20, minio.PutObjectOptions{})
	return nil, err
}
